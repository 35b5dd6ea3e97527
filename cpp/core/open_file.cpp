#include "core/open_file.h"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace vocabshift {

namespace {

[[noreturn]] void refuse(const char* what, const std::string& name) {
  throw std::system_error(errno ? errno : EIO, std::generic_category(), what + name);
}

}  // namespace

OpenFile::OpenFile(std::FILE* file, std::string name) : file_(file), name_(std::move(name)) {
  std::setvbuf(file, nullptr, _IONBF, 0);  // whoever writes and reads does it by the block
}

std::shared_ptr<OpenFile> OpenFile::to_read(const std::string& path) {
  errno = 0;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) refuse("cannot open ", path);
  return std::shared_ptr<OpenFile>(new OpenFile(file, path));
}

std::shared_ptr<OpenFile> OpenFile::to_write(const std::string& path) {
  errno = 0;
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (!file) refuse("cannot open ", path);
  return std::shared_ptr<OpenFile>(new OpenFile(file, path));
}

std::shared_ptr<OpenFile> OpenFile::temporary(const std::string& folder) {
  std::string path = folder + "/vocabshift-words-XXXXXX";
  errno = 0;
  const int descriptor = mkstemp(path.data());
  if (descriptor < 0) refuse("cannot create a file in ", folder);
  unlink(path.c_str());
  std::FILE* file = fdopen(descriptor, "w+b");
  if (!file) {
    ::close(descriptor);
    refuse("cannot create a file in ", folder);
  }
  return std::shared_ptr<OpenFile>(new OpenFile(file, path));
}

std::uint64_t OpenFile::size() {
  seek(0, SEEK_END);
  const off_t size = ftello(file_.get());
  if (size < 0) refuse("cannot read ", name_);
  return static_cast<std::uint64_t>(size);
}

void OpenFile::write(const void* data, std::size_t bytes) {
  errno = 0;
  if (std::fwrite(data, 1, bytes, file_.get()) != bytes) refuse("cannot write ", name_);
}

void OpenFile::write_at(std::uint64_t offset, const void* data, std::size_t bytes) {
  seek(offset, SEEK_SET);
  write(data, bytes);
}

bool OpenFile::read_at(std::uint64_t offset, void* data, std::size_t bytes) {
  seek(offset, SEEK_SET);
  errno = 0;
  if (std::fread(data, 1, bytes, file_.get()) == bytes) return true;
  if (std::feof(file_.get())) return false;
  refuse("cannot read ", name_);
}

void OpenFile::close() {
  errno = 0;
  if (std::fclose(file_.release()) != 0) refuse("cannot write ", name_);
}

void OpenFile::seek(std::uint64_t offset, int whence) {
  errno = 0;
  if (fseeko(file_.get(), static_cast<off_t>(offset), whence) != 0) refuse("cannot read ", name_);
}

}  // namespace vocabshift
