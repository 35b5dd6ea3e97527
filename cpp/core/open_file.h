// A file of the system that was opened by name, or has none. Owns how errors of the system are
// reported (std::system_error with the name) and how systems differ; knows nothing of what is in
// the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace vocabshift {

class OpenFile {
 public:
  // Paths are UTF-8.
  static std::shared_ptr<OpenFile> to_read(const std::string& path);
  static std::shared_ptr<OpenFile> to_write(const std::string& path);  // and to read; empty

  // A file in `folder` without a name, to write and read: it is gone when it is closed, however
  // the process ends.
  static std::shared_ptr<OpenFile> temporary(const std::string& folder);

  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile();

  const std::string& name() const { return name_; }
  std::uint64_t size() const;  // in bytes

  // After what was written before.
  void write(const void* data, std::size_t bytes);
  // Over what was written before, where nothing is written afterwards.
  void write_at(std::uint64_t offset, const void* data, std::size_t bytes);

  // False where the file ends before that. May be called by many threads.
  bool read_at(std::uint64_t offset, void* data, std::size_t bytes) const;

  // Closes what was written: some systems only then find that the disk is full. Not for a
  // temporary file.
  void close();

 private:
  OpenFile(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {}

  int descriptor_;    // -1 when closed
  std::string name_;  // for messages
};

}  // namespace vocabshift
