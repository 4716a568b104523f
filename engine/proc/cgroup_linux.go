package proc

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cgroupTimeout limits the wait for a cgroup to become empty. A killed process leaves its cgroup within milliseconds.
const cgroupTimeout = 2 * time.Second

// cgroup is the control group of all supervisors, and so of all commands, of one data directory. A process cannot leave
// it by changing its parent, session or environment. It enables no controllers. It is created with the first
// supervisor, so a daemon that runs no commands creates none. Safe for concurrent use.
type cgroup struct {
	mu   sync.Mutex
	name string   // empty: create none
	mark string   // file that stores the path for the next daemon
	path string   // empty: not created
	dir  *os.File // for clone; nil: not created
	err  error    // why it cannot be created
}

// begin enables the cgroup of a daemon. It first kills and removes the cgroup that the mark file names, which an
// earlier daemon of the data directory left behind.
func (c *cgroup) begin(nonce, mark string) error {
	err := c.close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.name, c.mark, c.err = cgroupOf(nonce), mark, nil
	left, _ := os.ReadFile(mark) // an unreadable mark names nothing
	return errors.Join(err, endCgroup(string(left), c.name))
}

// cgroupOf returns the name of a daemon's cgroup.
func cgroupOf(nonce string) string { return "lashd-" + root(nonce) }

// close kills and removes the cgroup, and disables it until the next begin.
func (c *cgroup) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dir != nil {
		c.dir.Close()
	}
	path, name := c.path, c.name
	c.name, c.path, c.dir, c.err = "", "", nil, errNoCgroup
	return endCgroup(path, name)
}

// errNoCgroup means that begin was not called, or close was.
var errNoCgroup = errors.New("not enabled in this process")

// open returns the directory of the cgroup and creates it if necessary. A permanent error is remembered, so that
// creation is not tried for every command. dir is nil if there is no cgroup.
func (c *cgroup) open() (dir *os.File, path string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dir == nil && c.name != "" && c.err == nil {
		err := c.makeLocked()
		if errors.Is(err, unix.ENOSPC) { // temporary: the mark cannot be written now
			return nil, "", err
		}
		c.err = err
	}
	return c.dir, c.path, c.err
}

// makeLocked creates the cgroup and writes the mark. The caller holds c.mu.
func (c *cgroup) makeLocked() error {
	own, err := ownCgroup()
	if err != nil {
		return err
	}
	path := filepath.Join(own, c.name)
	if err := endCgroup(path, c.name); err != nil { // left by a dead daemon: no running one has this name
		return err
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	dir, err := os.Open(path)
	if err == nil {
		err = usable(own, path)
	}
	if err == nil {
		err = os.WriteFile(c.mark, []byte(path), 0o600)
	}
	if err != nil {
		dir.Close()
		return errors.Join(err, unix.Rmdir(path))
	}
	c.path, c.dir = path, dir
	return nil
}

// usable returns an error unless processes can be started and killed in the cgroup. Linux 5.14 introduced cgroup.kill.
func usable(own, path string) error {
	for _, file := range []string{filepath.Join(own, "cgroup.procs"), filepath.Join(path, "cgroup.procs"), filepath.Join(path, "cgroup.kill")} {
		if err := unix.Access(file, unix.W_OK); err != nil {
			return &fs.PathError{Op: "write", Path: file, Err: err}
		}
	}
	return nil
}

// start starts a command in the cgroup, or outside of it where the system refuses that. command must return a new
// exec.Cmd each time.
func (c *cgroup) start(command func() *exec.Cmd) (cmd *exec.Cmd, err error) {
	for range 2 { // a second attempt if another process removed the cgroup
		dir, _, _ := c.open()
		cmd = command()
		if dir == nil {
			break
		}
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
		err := cmd.Start()
		if errno, ok := errors.AsType[syscall.Errno](err); !ok || errno.Temporary() {
			return cmd, err
		}
		c.refused(dir, err)
		cmd = command()
	}
	return cmd, cmd.Start()
}

// refused records that no process can be started in the cgroup. A cgroup that was removed is created again with the
// next command.
func (c *cgroup) refused(dir *os.File, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dir != dir {
		return
	}
	c.dir, c.path = nil, ""
	dir.Close()
	if !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.ENOENT) {
		c.err = fmt.Errorf("start a process in a cgroup: %w", err)
	}
}

// Containment describes, for diagnostics, how processes that leave the group of their command are ended: by a cgroup,
// or by supervisors alone and why.
func Containment() string {
	if dir, path, err := family.cgroup.open(); dir == nil {
		return fmt.Sprintf("supervisors, no cgroup: %v", err)
	} else {
		return "supervisors and cgroup " + path
	}
}

// endCgroup kills all processes in a cgroup and removes it, and retries until cgroupTimeout. It does nothing unless the
// path is a cgroup with that name, because the path comes from a file that may be outdated.
func endCgroup(path, name string) error {
	if name == "" || filepath.Base(path) != name || !isCgroup(path) {
		return nil
	}
	for deadline := time.Now().Add(cgroupTimeout); ; time.Sleep(time.Millisecond) {
		err := errors.Join(write(filepath.Join(path, "cgroup.kill"), "1"), removeCgroups(path))
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("end cgroup: %w", err)
		}
	}
}

// isCgroup reports whether the path is in a cgroup2 file system.
func isCgroup(path string) bool {
	var s unix.Statfs_t
	return unix.Statfs(path, &s) == nil && s.Type == unix.CGROUP2_SUPER_MAGIC
}

// removeCgroups removes a cgroup and the cgroups below it, which commands may have created.
func removeCgroups(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			err = errors.Join(err, removeCgroups(filepath.Join(path, entry.Name())))
		}
	}
	if err != nil {
		return err
	}
	return os.NewSyscallError("rmdir", unix.Rmdir(path))
}

// leaveCgroup removes the cgroup of a dead daemon if this process is the last one in it. Supervisors call it when they
// end.
func leaveCgroup(name string) {
	own, err := ownCgroup()
	if err != nil || filepath.Base(own) != name {
		return
	}
	if write(filepath.Join(filepath.Dir(own), "cgroup.procs"), "0") == nil {
		_ = removeCgroups(own) // it fails while others are in it; they remove it later
	}
}

// write writes to an existing file, such as a control file of the kernel.
func write(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// ownCgroup returns the directory of this process's cgroup.
func ownCgroup() (string, error) {
	path, err := cgroupPath("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	defer mounts.Close()
	for lines := bufio.NewScanner(mounts); lines.Scan(); {
		root, point, ok := cgroupMount(lines.Text())
		if !ok {
			continue
		}
		if below, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(below) {
			return filepath.Join(point, below), nil
		}
	}
	return "", errors.New("no mounted cgroup2 file system contains the daemon's cgroup")
}

// cgroupPath returns the path of a process in the cgroup hierarchy of version 2, which has the number 0.
func cgroupPath(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			return path, nil
		}
	}
	return "", errors.New("the system does not use cgroups version 2")
}

// cgroupMount parses a line of proc_pid_mountinfo(5). It returns the mounted cgroup and the mount point.
func cgroupMount(line string) (root, point string, ok bool) {
	mount, kind, _ := strings.Cut(line, " - ")
	fields := strings.Fields(mount)
	if !strings.HasPrefix(kind, "cgroup2 ") || len(fields) < 5 {
		return "", "", false
	}
	return unescape(fields[3]), unescape(fields[4]), true
}

// unescape decodes blanks and backslashes in the paths of mountinfo.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace
