#include "core/open_file.h"

#include <cerrno>
#include <system_error>
#include <utility>

#if defined(_WIN32)
#if !defined(NOMINMAX)
#define NOMINMAX
#endif
#define WIN32_LEAN_AND_MEAN
#include <fcntl.h>
#include <io.h>
#include <process.h>
#include <sys/stat.h>
#include <windows.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#else
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace vocabshift {

namespace {

[[noreturn]] void refuse(const char* what, const std::string& name) {
  throw std::system_error(errno ? errno : EIO, std::generic_category(), what + name);
}

// What systems differ in. Like read and write they return less than nothing, with errno, for an
// error, and the number of bytes otherwise, which may be less than was asked for.
#if defined(_WIN32)

constexpr std::size_t kAtOnce = std::size_t{1} << 30;  // these take 32 bits
constexpr int kMode = _O_BINARY | _O_NOINHERIT;

int open_path(const std::string& path, int flags) {
  const std::filesystem::path wide(std::u8string(path.begin(), path.end()));
  return _wopen(wide.c_str(), flags | kMode, _S_IREAD | _S_IWRITE);
}
int open_to_read(const std::string& path) { return open_path(path, _O_RDONLY); }
int open_to_write(const std::string& path) {
  return open_path(path, _O_RDWR | _O_CREAT | _O_TRUNC);
}
int open_temporary(const std::string& folder, std::string* path) {
  static std::atomic<unsigned> files = 0;
  for (;;) {  // the name of a process that is gone may be there still
    *path = folder + "/vocabshift-words-" + std::to_string(_getpid()) + "-" +
            std::to_string(files.fetch_add(1));
    const int file = open_path(*path, _O_RDWR | _O_CREAT | _O_EXCL | _O_TEMPORARY);
    if (file >= 0 || errno != EEXIST) return file;
  }
}
int close_file(int file) { return _close(file); }
std::int64_t size_of(int file) { return _filelengthi64(file); }
std::int64_t write_some(int file, const void* data, std::size_t bytes) {
  return _write(file, data, static_cast<unsigned>(std::min(bytes, kAtOnce)));
}
bool seek_to(int file, std::uint64_t offset) {
  return _lseeki64(file, static_cast<std::int64_t>(offset), SEEK_SET) >= 0;
}
// Not by a seek and a read: threads share the place in the file.
std::int64_t read_some(int file, std::uint64_t offset, void* data, std::size_t bytes) {
  OVERLAPPED at{};
  at.Offset = static_cast<DWORD>(offset);
  at.OffsetHigh = static_cast<DWORD>(offset >> 32);
  const auto handle = reinterpret_cast<HANDLE>(_get_osfhandle(file));
  DWORD got = 0;
  if (ReadFile(handle, data, static_cast<DWORD>(std::min(bytes, kAtOnce)), &got, &at)) return got;
  if (GetLastError() == ERROR_HANDLE_EOF) return 0;
  errno = EIO;
  return -1;
}

#else

int open_to_read(const std::string& path) { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); }
int open_to_write(const std::string& path) {
  return ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}
int open_temporary(const std::string& folder, std::string* path) {
  *path = folder + "/vocabshift-words-XXXXXX";
  const int file = mkstemp(path->data());
  if (file >= 0) unlink(path->c_str());
  return file;
}
int close_file(int file) { return ::close(file); }
std::int64_t size_of(int file) {
  struct stat status;
  return ::fstat(file, &status) == 0 ? status.st_size : -1;
}
std::int64_t write_some(int file, const void* data, std::size_t bytes) {
  return ::write(file, data, bytes);
}
bool seek_to(int file, std::uint64_t offset) {
  return ::lseek(file, static_cast<off_t>(offset), SEEK_SET) >= 0;
}
std::int64_t read_some(int file, std::uint64_t offset, void* data, std::size_t bytes) {
  return ::pread(file, data, bytes, static_cast<off_t>(offset));
}

#endif

}  // namespace

std::shared_ptr<OpenFile> OpenFile::to_read(const std::string& path) {
  errno = 0;
  const int file = open_to_read(path);
  if (file < 0) refuse("cannot open ", path);
  return std::shared_ptr<OpenFile>(new OpenFile(file, path));
}

std::shared_ptr<OpenFile> OpenFile::to_write(const std::string& path) {
  errno = 0;
  const int file = open_to_write(path);
  if (file < 0) refuse("cannot open ", path);
  return std::shared_ptr<OpenFile>(new OpenFile(file, path));
}

std::shared_ptr<OpenFile> OpenFile::temporary(const std::string& folder) {
  std::string path;
  errno = 0;
  const int file = open_temporary(folder, &path);
  if (file < 0) refuse("cannot create a file in ", folder);
  return std::shared_ptr<OpenFile>(new OpenFile(file, path));
}

OpenFile::~OpenFile() {
  if (descriptor_ >= 0) close_file(descriptor_);
}

std::uint64_t OpenFile::size() const {
  errno = 0;
  const std::int64_t size = size_of(descriptor_);
  if (size < 0) refuse("cannot read ", name_);
  return static_cast<std::uint64_t>(size);
}

void OpenFile::write(const void* data, std::size_t bytes) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    errno = 0;
    const std::int64_t done = write_some(descriptor_, from, bytes);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) refuse("cannot write ", name_);
    from += done;
    bytes -= static_cast<std::size_t>(done);
  }
}

void OpenFile::write_at(std::uint64_t offset, const void* data, std::size_t bytes) {
  errno = 0;
  if (!seek_to(descriptor_, offset)) refuse("cannot write ", name_);
  write(data, bytes);
}

bool OpenFile::read_at(std::uint64_t offset, void* data, std::size_t bytes) const {
  auto* to = static_cast<char*>(data);
  while (bytes > 0) {
    errno = 0;
    const std::int64_t got = read_some(descriptor_, offset, to, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse("cannot read ", name_);
    if (got == 0) return false;
    to += got;
    offset += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

void OpenFile::close() {
  errno = 0;
  if (close_file(std::exchange(descriptor_, -1)) != 0) refuse("cannot write ", name_);
}

}  // namespace vocabshift
