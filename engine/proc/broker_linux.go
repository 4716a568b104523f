package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// broker connects the sockets of the programs in a namespace, so that these reach local sockets of each other and no others. The system
// call filter lets a program wait in connect until the broker has answered. The broker runs in threads of the first process that are not
// confined, in the same namespaces.
//
// The broker never lets a program continue with its own call: the program could change the address, or put another socket in place of the
// descriptor, after the broker looked. It takes a copy of both, connects the socket itself, and answers with the result.
type broker struct {
	listener int // where notifications of the filter arrive
}

// notification is struct seccomp_notif: a program waits in a system call.
type notification struct {
	id           uint64
	thread       uint32 // in the process namespace of the reader
	_            uint32
	number, arch uint32
	_            uint64
	args         [6]uint64
}

// verdict is struct seccomp_notif_resp: what the call returns.
type verdict struct {
	id     uint64
	result int64
	errno  int32 // negative
	flags  uint32
}

// maxAddress is the size of struct sockaddr_storage, the largest address that the kernel accepts.
const maxAddress = 128

// serve answers until this process ends. Each call gets a goroutine, because some connections have to wait for the server.
func (b broker) serve() {
	for {
		var n notification
		switch err := b.control(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ENOENT): // the program was killed
		case err != nil:
			return
		default:
			go b.answer(&n)
		}
	}
}

// control makes a request to the listener.
func (b broker) control(request uintptr, argument unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(b.listener), request, uintptr(argument)); errno != 0 {
		return errno
	}
	return nil
}

// answer carries out a call and answers it. A program that was killed gets no answer.
func (b broker) answer(n *notification) {
	v := verdict{id: n.id}
	if err := b.connect(n); err != nil {
		v.errno = -int32(unix.EACCES)
		if errno, ok := errors.AsType[unix.Errno](err); ok {
			v.errno = -int32(errno)
		}
	}
	_ = b.control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&v))
}

// connect connects the socket of a waiting program.
func (b broker) connect(n *notification) error {
	task, err := n.open()
	if err != nil {
		return err
	}
	defer unix.Close(task)
	// The thread may have ended before it was opened, and another one may have its number. If it still waits now, it is the right one.
	if err := b.waits(n); err != nil {
		return err
	}
	socket, err := unix.PidfdGetfd(task, int(int32(n.args[0])), 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	domain, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return err
	}
	address, err := n.address()
	if err != nil {
		return err
	}
	if err := b.waits(n); err != nil { // so the address is the one of this program
		return err
	}
	if domain != unix.AF_UNIX {
		return connect(socket, address)
	}
	return b.connectLocal(n, socket, address)
}

// waits returns an error unless the program still waits for the answer.
func (b broker) waits(n *notification) error {
	return b.control(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&n.id))
}

// connectLocal connects a local socket, if the server is in the network of this process. Names without a path are in a network of their
// own anyway.
func (b broker) connectLocal(n *notification, socket int, address []byte) error {
	if kind, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || kind == unix.SOCK_DGRAM {
		return unix.EACCES
	}
	path, named := pathOf(address)
	if !named {
		return connect(socket, address)
	}
	server, err := n.lookUp(path)
	if err != nil {
		return err
	}
	defer unix.Close(server)
	if err := b.waits(n); err != nil { // so the directory is the one of this program
		return err
	}
	if err := listensHere(server); err != nil {
		return err
	}
	return connect(socket, append([]byte{unix.AF_UNIX, 0}, fmt.Sprintf("/proc/self/fd/%d\x00", server)...))
}

// open returns a descriptor of the waiting thread, or of its process on kernels before 6.9.
func (n *notification) open() (int, error) {
	task, err := unix.PidfdOpen(int(n.thread), unix.O_EXCL) // PIDFD_THREAD
	if !errors.Is(err, unix.EINVAL) {
		return task, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.thread))
	if err != nil {
		return -1, err
	}
	var process int
	_, ids, _ := bytes.Cut(status, []byte("\nTgid:"))
	if _, err := fmt.Sscan(string(ids), &process); err != nil {
		return -1, err
	}
	return unix.PidfdOpen(process, 0)
}

// address copies the address out of the memory of the program.
func (n *notification) address() ([]byte, error) {
	size := uint32(n.args[2])
	if size == 0 || size > maxAddress {
		return nil, unix.EINVAL
	}
	address := make([]byte, size)
	local := []unix.Iovec{{Base: &address[0], Len: uint64(size)}}
	remote := []unix.RemoteIovec{{Base: uintptr(n.args[1]), Len: int(size)}}
	if got, err := unix.ProcessVMReadv(int(n.thread), local, remote, 0); err != nil || got != int(size) {
		return nil, unix.EFAULT
	}
	return address, nil
}

// lookUp opens the file of a server's socket, as the program would find it, without using it. Links of /proc mean this process here, so
// they are not followed.
func (n *notification) lookUp(path string) (int, error) {
	dir, err := unix.Open(fmt.Sprintf("/proc/%d/cwd", n.thread), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(dir)
	return unix.Openat2(dir, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS})
}

// pathOf returns the path in an address; false: the address has none.
func pathOf(address []byte) (string, bool) {
	if len(address) < 3 || address[0] != unix.AF_UNIX || address[1] != 0 || address[2] == 0 {
		return "", false
	}
	path, _, _ := bytes.Cut(address[2:], []byte{0})
	return string(path), true
}

// connect makes the system call with an address as the kernel has it.
func connect(socket int, address []byte) error {
	if _, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(socket), uintptr(unsafe.Pointer(&address[0])), uintptr(len(address))); errno != 0 {
		return errno
	}
	return nil
}

// canBroker reports whether the kernel lists the local sockets of a network, which the broker needs.
func canBroker() bool {
	_, err := localServers()
	return err == nil
}

// listensHere returns an error unless a server of this network listens at an open socket file. So a program reaches no server outside,
// wherever its file is. A server that is bound to a file stays the only one for it, so the answer holds while the file is open.
func listensHere(file int) error {
	var status unix.Stat_t
	if err := unix.Fstat(file, &status); err != nil {
		return err
	}
	if status.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return unix.ECONNREFUSED
	}
	inode, err := inodeOf(file)
	if err != nil {
		return err
	}
	here, err := localServers()
	if err != nil {
		return err
	}
	if slices.Contains(here, inode) {
		return nil
	}
	// Programs replace the socket of a server that has ended, and expect this error for it.
	var mount unix.Statfs_t
	if err := unix.Fstatfs(file, &mount); err != nil || mount.Flags&unix.ST_RDONLY != 0 {
		return unix.EACCES
	}
	return unix.ECONNREFUSED
}
