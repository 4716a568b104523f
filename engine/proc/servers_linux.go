package proc

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// inode identifies a file as the kernel does, by the numbers that it has inside of the kernel. On some file systems stat returns others.
type inodeID struct{ device, number uint32 }

// inodeOf returns the inode of an open file.
func inodeOf(file int) (id inodeID, err error) {
	var mount, major, minor, number uint64
	info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", file))
	if err != nil {
		return id, err
	}
	found := 0
	for line := range strings.Lines(string(info)) {
		for name, field := range map[string]*uint64{"mnt_id:": &mount, "ino:": &number} {
			if n, _ := fmt.Sscanf(line, name+" %d", field); n == 1 {
				found++
			}
		}
	}
	if found != 2 {
		return id, errors.New("the kernel does not name the inode of an open file")
	}
	if major, minor, err = deviceOf(mount); err != nil {
		return id, err
	}
	return inodeID{device: uint32(major<<20 | minor), number: uint32(number)}, nil
}

// deviceOf returns the device of a mount of this process.
func deviceOf(mount uint64) (major, minor uint64, err error) {
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return 0, 0, err
	}
	defer mounts.Close()
	for lines := bufio.NewScanner(mounts); lines.Scan(); {
		var id, parent uint64
		if n, _ := fmt.Sscanf(lines.Text(), "%d %d %d:%d", &id, &parent, &major, &minor); n == 4 && id == mount {
			return major, minor, nil
		}
	}
	return 0, 0, fmt.Errorf("mount %d is not in the list", mount)
}

// Constants of linux/unix_diag.h.
const (
	diagShowFile  = 0x2 // UDIAG_SHOW_VFS
	diagFile      = 1   // UNIX_DIAG_VFS
	diagListening = 1 << 10
)

// diagRequest is a netlink message with struct unix_diag_req.
type diagRequest struct {
	header           unix.NlMsghdr
	family, protocol uint8
	_                uint16
	states, inode    uint32
	show             uint32
	cookie           [2]uint32
}

// localServers returns the files of all local sockets that listen in the network of this process.
func localServers() (all []inodeID, err error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	r := diagRequest{family: unix.AF_UNIX, states: diagListening, show: diagShowFile}
	r.header = unix.NlMsghdr{Len: uint32(unsafe.Sizeof(r)), Type: unix.SOCK_DIAG_BY_FAMILY, Flags: unix.NLM_F_REQUEST | unix.NLM_F_DUMP}
	request := unsafe.Slice((*byte)(unsafe.Pointer(&r)), unsafe.Sizeof(r))
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, os.NewSyscallError("sendto", err)
	}
	for buffer := make([]byte, 32<<10); ; {
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, os.NewSyscallError("recvfrom", err)
		}
		more, over, err := serversIn(buffer[:n])
		all = append(all, more...)
		if over || err != nil {
			return all, err
		}
	}
}

// serversIn reads messages of the kernel. over reports whether the last one is among them.
func serversIn(data []byte) (all []inodeID, over bool, err error) {
	for len(data) >= unix.SizeofNlMsghdr {
		header := (*unix.NlMsghdr)(unsafe.Pointer(&data[0]))
		if header.Len < unix.SizeofNlMsghdr || int(header.Len) > len(data) {
			break
		}
		switch header.Type {
		case unix.NLMSG_DONE:
			return all, true, nil
		case unix.NLMSG_ERROR:
			return nil, true, errors.New("the kernel does not list local sockets")
		}
		const head = 16 // struct unix_diag_msg
		if id, ok := fileIn(data[unix.SizeofNlMsghdr:header.Len], head); ok {
			all = append(all, id)
		}
		data = data[min((int(header.Len)+3)&^3, len(data)):]
	}
	return all, false, nil
}

// fileIn returns the file in the attributes of a message, which begin after its head.
func fileIn(message []byte, head int) (inodeID, bool) {
	for message = message[min(head, len(message)):]; len(message) >= 4; {
		size, kind := int(binary.NativeEndian.Uint16(message)), binary.NativeEndian.Uint16(message[2:])
		if size < 4 || size > len(message) {
			break
		}
		if kind == diagFile && size >= 12 {
			return inodeID{number: binary.NativeEndian.Uint32(message[4:]), device: binary.NativeEndian.Uint32(message[8:])}, true
		}
		message = message[min((size+3)&^3, len(message)):]
	}
	return inodeID{}, false
}
