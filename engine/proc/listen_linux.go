package proc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// backlog is how many connections may wait for Accept.
const backlog = 1024

// A process cannot listen in the network of another one. So the gate makes the socket in the child's network, and sends it over a pair of
// sockets. Only the gate and this process hold the pair: the program gets neither it nor the listening socket.

// listenPair returns the two ends over which the gate sends the listening socket. The caller closes both.
func listenPair() (ours, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(pair[0]), "listener"), os.NewFile(uintptr(pair[1]), "listener"), nil
}

// sendListener listens at ListenAddress in the network of this process, and sends the socket over an end of listenPair.
func sendListener(end int) error {
	defer unix.Close(end)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	at := netip.MustParseAddrPort(ListenAddress)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: at.Addr().As4(), Port: int(at.Port())}); err != nil {
		return os.NewSyscallError("bind", err)
	}
	if err := unix.Listen(fd, backlog); err != nil {
		return os.NewSyscallError("listen", err)
	}
	return os.NewSyscallError("sendmsg", unix.Sendmsg(end, []byte{0}, unix.UnixRights(fd), nil, unix.MSG_NOSIGNAL))
}

// receiveListener returns the socket that the gate has sent. It does not wait: call it when the program runs.
func receiveListener(ours *os.File) (net.Listener, error) {
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(int(ours.Fd()), make([]byte, 1), rights, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
	if err != nil {
		return nil, os.NewSyscallError("recvmsg", err)
	}
	fds, err := descriptors(rights[:n])
	if err == nil && len(fds) != 1 {
		err = errors.New("the child sent no listening socket")
	}
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fds[0]), "listener")
	defer f.Close()
	return net.FileListener(f)
}

// serve runs the Serve function of a command. The function that it returns closes the listener and waits for Serve to return.
func (s *supervised) serve(ctx context.Context, c Command) (stop func()) {
	if s.listener == nil {
		return func() {}
	}
	var serving sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	serving.Go(func() { c.Serve(ctx, s.listener) })
	return func() {
		cancel()
		s.listener.Close() // Serve may have closed it
		serving.Wait()
	}
}

// checkServe returns an error if the child could not be served, because it has no network of its own.
func (c Command) checkServe() error {
	if c.Serve != nil && (c.Confine == nil || c.Confine.Sandbox == nil || !c.Confine.Sandbox.alone()) {
		return fmt.Errorf("%w: only a child with a network of its own can be served", ErrNoSandbox)
	}
	return nil
}
