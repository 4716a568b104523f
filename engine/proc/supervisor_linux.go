package proc

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// supervisorName is what this program is called as a supervisor. It does not name lashd: whoever ends all processes of that
	// name by force is cleaned up after.
	supervisorName = "process supervisor"
	// supervisorVariable tells a supervisor from others, by the nonce of its command.
	supervisorVariable = "LASHD_SUPERVISOR"
	// endLimit is how long a supervisor goes on killing what does not die, such as a process of another user.
	endLimit = 10 * time.Second
)

// A supervisor begins before anything that takes longer to start.
func init() {
	if len(os.Args) == 1 && os.Args[0] == supervisorName {
		os.Exit(supervise(os.NewFile(3, "daemon")))
	}
}

// supervisor starts one command, and outlives all that descends from it, unless that is killed by force.
type supervisor struct {
	daemon *os.File
	report *json.Encoder
	leader *child

	alone atomic.Bool // the daemon is gone

	mu    sync.Mutex
	gone  bool // the leader is reaped: its group may be another's
	swept map[int]bool
}

// supervise runs on the thread that the process began with, which is the one that the leader dies with.
func supervise(daemon *os.File) (code int) {
	unix.CloseOnExec(int(daemon.Fd()))
	// Taken, and not ignored: a command would inherit that.
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT)
	s := &supervisor{daemon: daemon, report: json.NewEncoder(daemon), swept: map[int]bool{}}
	err := os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	if err == nil {
		err = s.begin()
	}
	if errors.Is(err, io.EOF) {
		leaveCgroup(cgroupOf(os.Getenv(supervisorVariable)))
		return 0
	}
	if err != nil {
		_ = s.report.Encode(note{Refusal: refusalOf(err)}) // whoever does not hear it is gone
		return 0
	}
	_ = s.report.Encode(note{Pid: s.leader.pid()})
	go s.obey()
	s.reap()
	if s.alone.Load() {
		leaveCgroup(cgroupOf(os.Getenv(supervisorVariable)))
	}
	return 0
}

// begin starts the command. Afterwards nothing that was passed with the request is open here.
func (s *supervisor) begin() error {
	c, dir, err := receive(s.daemon)
	if err != nil {
		return err
	}
	for _, f := range []io.Closer{c.Stdin.(*os.File), c.Stdout.(*os.File), c.Stderr.(*os.File)} {
		defer f.Close()
	}
	if c.Program != nil {
		defer c.Program.Close()
	}
	if dir != nil {
		defer dir.Close()
		if err := dir.Chdir(); err != nil {
			return err
		}
	}
	s.leader, err = c.spawn()
	return errors.Join(err, os.Chdir("/"))
}

// receive reads the request. Streams that are not passed are the null device, as which this process has its own.
func receive(daemon *os.File) (c Command, dir *os.File, err error) {
	var head [4]byte
	rights := make([]byte, unix.CmsgSpace(5*4))
	got, n, _, _, err := unix.Recvmsg(int(daemon.Fd()), head[:], rights, unix.MSG_CMSG_CLOEXEC|unix.MSG_WAITALL)
	if err != nil {
		return c, nil, os.NewSyscallError("recvmsg", err)
	}
	if got == 0 {
		return c, nil, io.EOF // the daemon is gone
	}
	fds, err := descriptors(rights[:n])
	if err != nil {
		return c, nil, err
	}
	var r request
	data := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(daemon, data); err != nil {
		return c, nil, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return c, nil, err
	}
	files := [5]*os.File{os.Stdin, os.Stdout, os.Stderr}
	for i, there := range r.Files {
		if there && len(fds) > 0 {
			files[i], fds = os.NewFile(uintptr(fds[0]), "passed"), fds[1:]
		}
	}
	return Command{
		Argv: r.Argv, Path: r.Path, Env: r.Env, Nonce: r.Nonce, Confine: r.Confine, Terminal: r.Terminal,
		Stdin: files[0], Stdout: files[1], Stderr: files[2], Program: files[3],
	}, files[4], nil
}

func descriptors(rights []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) == 0 {
		return nil, os.NewSyscallError("recvmsg", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	return fds, os.NewSyscallError("recvmsg", err)
}

func lengthOf(data []byte) []byte { return binary.BigEndian.AppendUint32(nil, uint32(len(data))) }

// obey does what the daemon says. When it says nothing any more, everything ends.
func (s *supervisor) obey() {
	what := make([]byte, 1)
	for {
		n, err := s.daemon.Read(what)
		if err != nil || n == 0 {
			break
		}
		switch what[0] {
		case toInterrupt:
			s.signal(group.interrupt)
		case toTerminate:
			s.signal(group.terminate)
		case toKill:
			s.signal(group.kill)
		case toEnd:
			s.end()
		}
	}
	s.alone.Store(true)
	s.end()
}

func (s *supervisor) signal(how func(group)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.gone {
		how(s.leader.group)
	}
}

// end kills all that descends from this process until nothing is left. Then reap ends the process.
func (s *supervisor) end() {
	for limit := time.Now().Add(endLimit); time.Now().Before(limit); time.Sleep(time.Millisecond) {
		s.mu.Lock()
		for _, pid := range killDescendants(os.Getpid()) {
			if pid != s.leader.pid() {
				s.swept[pid] = true
			}
		}
		s.mu.Unlock()
	}
	os.Exit(1)
}

// reap takes every process that ends, and returns when none is left. It tells of the leader when its group is dead.
func (s *supervisor) reap() {
	for {
		pid, err := endedChild()
		if err != nil {
			break
		}
		if pid == s.leader.pid() && !s.gone {
			_ = s.report.Encode(note{Exit: s.leaderEnded()})
			continue
		}
		unix.Wait4(pid, nil, 0, nil) // it has ended, and nobody else waits for it
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.swept) > 0 {
		var pids []int
		for pid := range s.swept {
			pids = append(pids, pid)
		}
		_ = s.report.Encode(note{Swept: pids})
	}
}

// leaderEnded kills the group before it reaps the leader, whose zombie keeps the group's number from being used again.
func (s *supervisor) leaderEnded() *ended {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leader.group.kill()
	err := s.leader.cmd.Wait()
	s.gone = true
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return &ended{Code: -1}
	}
	exit := exitOf(s.leader.cmd.ProcessState)
	return &ended{Code: exit.Code, Signal: exit.Signal}
}

// endedChild waits for a child that has ended, and leaves it unreaped. It fails when there are no children.
func endedChild() (pid int, err error) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if err == syscall.EINTR {
			continue
		}
		// The pid comes first in what follows the three numbers of the head, aligned as a pointer.
		at := (3*unsafe.Sizeof(info.Signo) + unsafe.Sizeof(uintptr(0)) - 1) &^ (unsafe.Sizeof(uintptr(0)) - 1)
		return int(*(*int32)(unsafe.Add(unsafe.Pointer(&info), at))), err
	}
}
