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

// cgroupPatience limits how long the end of a cgroup may take. A killed process leaves it within milliseconds.
const cgroupPatience = 2 * time.Second

// cgroup is the control group of all supervisors, and so of all commands, of one data directory. No process leaves it by changing its
// parent, session or environment. It enables no controllers. It is made for the first supervisor, so that a daemon without commands
// makes none.
type cgroup struct {
	mu   sync.Mutex
	name string   // empty: there is to be none
	mark string   // the file that keeps the path for the next daemon
	path string   // empty: not made
	dir  *os.File // for clone; nil: not made
	err  error    // why it cannot be made
}

// begin kills and removes the cgroup that the mark names: an earlier daemon of the data directory left it.
func (c *cgroup) begin(nonce, mark string) error {
	err := c.close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.name, c.mark, c.err = cgroupOf(nonce), mark, nil
	left, _ := os.ReadFile(mark) // an unreadable mark names nothing
	return errors.Join(err, endCgroup(string(left), c.name))
}

// cgroupOf is the name of the cgroup of a daemon.
func cgroupOf(nonce string) string { return "lashd-" + root(nonce) }

// close kills and removes the cgroup. Afterwards none is made.
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

var errNoCgroup = errors.New("no daemon runs here")

// open makes the cgroup unless it is there or cannot be made.
func (c *cgroup) open() (dir *os.File, path string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dir == nil && c.name != "" && c.err == nil {
		err := c.makeLocked()
		if errors.Is(err, unix.ENOSPC) { // the mark cannot be written now
			return nil, "", err
		}
		c.err = err
	}
	return c.dir, c.path, c.err
}

func (c *cgroup) makeLocked() error {
	own, err := ownCgroup()
	if err != nil {
		return err
	}
	path := filepath.Join(own, c.name)
	if err := endCgroup(path, c.name); err != nil { // of a daemon that is gone: no other one has this name
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

// usable reports whether processes can be started in a new cgroup, and killed there: Linux 5.14 is the first to kill cgroups.
func usable(own, path string) error {
	for _, file := range []string{filepath.Join(own, "cgroup.procs"), filepath.Join(path, "cgroup.procs"), filepath.Join(path, "cgroup.kill")} {
		if err := unix.Access(file, unix.W_OK); err != nil {
			return &fs.PathError{Op: "write", Path: file, Err: err}
		}
	}
	return nil
}

// start starts a command in the cgroup, or without one where the system refuses that.
func (c *cgroup) start(command func() *exec.Cmd) (cmd *exec.Cmd, err error) {
	for range 2 { // once more if somebody removed the cgroup
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

// refused records that no process can be started in the cgroup. One that somebody removed is made again.
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

// Containment says what ends the processes that leave the group of their command: a cgroup, or supervisors alone and why.
func Containment() string {
	if dir, path, err := family.cgroup.open(); dir == nil {
		return fmt.Sprintf("supervisors, no cgroup: %v", err)
	} else {
		return "supervisors and cgroup " + path
	}
}

// endCgroup kills everything in a cgroup, and removes it. It ignores what is no cgroup of that name.
func endCgroup(path, name string) error {
	if name == "" || filepath.Base(path) != name || !isCgroup(path) {
		return nil
	}
	for deadline := time.Now().Add(cgroupPatience); ; time.Sleep(time.Millisecond) {
		err := errors.Join(write(filepath.Join(path, "cgroup.kill"), "1"), removeCgroups(path))
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("end cgroup: %w", err)
		}
	}
}

func isCgroup(path string) bool {
	var s unix.Statfs_t
	return unix.Statfs(path, &s) == nil && s.Type == unix.CGROUP2_SUPER_MAGIC
}

// removeCgroups removes a cgroup and those below it, which a command may have made.
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

// leaveCgroup removes the cgroup of a daemon that is gone, if this process is the last one in it.
func leaveCgroup(name string) {
	own, err := ownCgroup()
	if err != nil || filepath.Base(own) != name {
		return
	}
	if write(filepath.Join(filepath.Dir(own), "cgroup.procs"), "0") == nil {
		_ = removeCgroups(own) // others are in it, and remove it later
	}
}

func write(file, text string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// ownCgroup is the directory of the cgroup of this process.
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
	return "", errors.New("no cgroup2 file system is mounted that shows the daemon's cgroup")
}

// cgroupPath reads the path of a process in the hierarchy of version 2, which has the number 0.
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
	return "", errors.New("the system has no cgroups of version 2")
}

// cgroupMount reads a line of proc_pid_mountinfo(5): which cgroup is mounted, and where.
func cgroupMount(line string) (root, point string, ok bool) {
	mount, kind, _ := strings.Cut(line, " - ")
	fields := strings.Fields(mount)
	if !strings.HasPrefix(kind, "cgroup2 ") || len(fields) < 5 {
		return "", "", false
	}
	return unescape(fields[3]), unescape(fields[4]), true
}

// unescape undoes what the system does to blanks and backslashes in paths.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace
