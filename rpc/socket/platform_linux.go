package socket

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// peerOf reads the credentials of a socket's peer.
func peerOf(fd int) (Peer, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return Peer{}, err
	}
	return Peer{UID: int(cred.Uid), PID: int(cred.Pid)}, nil
}

// networks are the file systems on which SQLite cannot rely on locks and shared memory. FUSE is
// included, because lashd cannot know what is behind it.
var networks = map[uint32]string{
	unix.AFS_FS_MAGIC:     "afs",
	unix.AFS_SUPER_MAGIC:  "afs",
	unix.CEPH_SUPER_MAGIC: "ceph",
	unix.CIFS_SUPER_MAGIC: "cifs",
	unix.CODA_SUPER_MAGIC: "coda",
	unix.FUSE_SUPER_MAGIC: "fuse",
	unix.NCP_SUPER_MAGIC:  "ncp",
	unix.NFS_SUPER_MAGIC:  "nfs",
	unix.SMB2_SUPER_MAGIC: "smb2",
	unix.SMB_SUPER_MAGIC:  "smb",
	unix.V9FS_MAGIC:       "9p",
}

// NetworkFilesystem returns the type of the file system that contains dir if a database is not safe
// on it. Otherwise it returns "".
func NetworkFilesystem(dir string) (string, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return "", fmt.Errorf("statfs %s: %w", dir, err)
	}
	return networks[uint32(stat.Type)], nil
}
