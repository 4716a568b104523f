package persistence

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// stampOf returns what the file system records about a file, without opening it or following a
// link.
func stampOf(path string) (fileStamp, error) {
	var st unix.Statx_t
	mask := unix.STATX_INO | unix.STATX_BTIME | unix.STATX_CTIME | unix.STATX_MTIME | unix.STATX_SIZE
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, mask, &st); err != nil {
		return fileStamp{}, &os.PathError{Op: "statx", Path: path, Err: err}
	}
	ns := func(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }
	s := fileStamp{identity: identity{Inode: st.Ino}, changedNs: ns(st.Ctime), modifiedNs: ns(st.Mtime), size: int64(st.Size)}
	if st.Mask&unix.STATX_BTIME != 0 {
		s.BornNs = ns(st.Btime)
	}
	return s, nil
}

// bootID identifies this run of the kernel, or returns "" if it is unknown.
func bootID() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // without an id, judge detects less
	head, _, _ := strings.Cut(string(id), "-")
	return head
}
