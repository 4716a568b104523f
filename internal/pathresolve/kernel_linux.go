package pathresolve

import (
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// ErrKernelFile means that a file looks regular, but reading it asks the kernel, which may block
// forever.
var ErrKernelFile = errors.New("a file of the kernel, as in /proc or /sys")

// kernelFiles are the types of file systems whose files the kernel generates when they are read.
var kernelFiles = []int64{
	unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC, unix.SELINUX_MAGIC,
	unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.BPF_FS_MAGIC, unix.EFIVARFS_MAGIC,
}

// CheckStored fails with ErrKernelFile if an open file is not stored anywhere. It does not read the
// file.
func CheckStored(f *os.File) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return os.NewSyscallError("fstatfs", err)
	}
	if slices.Contains(kernelFiles, int64(st.Type)) {
		return ErrKernelFile
	}
	return nil
}
