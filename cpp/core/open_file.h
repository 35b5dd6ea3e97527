// A file of the system that was opened by name, or has none. Owns how errors of the system are
// reported (std::system_error with the name); knows nothing of what is in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

namespace vocabshift {

class OpenFile {
 public:
  static std::shared_ptr<OpenFile> to_read(const std::string& path);
  static std::shared_ptr<OpenFile> to_write(const std::string& path);

  // A file in `folder` without a name, to write and read: it is gone when it is closed, however
  // the process ends.
  static std::shared_ptr<OpenFile> temporary(const std::string& folder);

  const std::string& name() const { return name_; }
  std::uint64_t size();
  void write(const void* data, std::size_t bytes);
  void write_at(std::uint64_t offset, const void* data, std::size_t bytes);

  // False where the file ends before that.
  bool read_at(std::uint64_t offset, void* data, std::size_t bytes);

  // Closes what was written: some systems only then find that the disk is full. Not for a
  // temporary file.
  void close();

 private:
  OpenFile(std::FILE* file, std::string name);
  void seek(std::uint64_t offset, int whence);

  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Closer> file_;
  std::string name_;  // for messages
};

}  // namespace vocabshift
