package attachment

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"lashd/rpc/protocol"
)

// ReadFile reads a file to attach, of at most limit bytes. It does not wait for a pipe or a device: only a regular file is read. The size is
// checked again while the file is read, because the file may grow or be replaced.
func ReadFile(path string, limit int64) (*protocol.Attachment, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Size() > limit:
		return nil, fmt.Errorf("%s has %d bytes; at most %d are sent", path, info.Size(), limit)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	kind, err := Checked("", data)
	if err != nil {
		return nil, fmt.Errorf("%s %w", path, err)
	}
	return &protocol.Attachment{Name: filepath.Base(path), Type: kind, Data: data}, nil
}
