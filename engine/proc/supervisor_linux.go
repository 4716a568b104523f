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
	// supervisorName is argv[0] of a supervisor. It does not contain "lashd", so that a supervisor survives and cleans
	// up when all processes of that name are killed.
	supervisorName = "process supervisor"
	// supervisorVariable holds the nonce of a supervisor's command, so that Sweep can recognize the supervisor.
	supervisorVariable = "LASHD_SUPERVISOR"
	// endLimit is how long a supervisor keeps killing processes that do not die, such as those of another user.
	endLimit = 10 * time.Second
)

// A supervisor takes over in init, before slower initialization.
func init() {
	if len(os.Args) == 1 && os.Args[0] == supervisorName {
		os.Exit(supervise(os.NewFile(3, "daemon")))
	}
}

// supervisor runs in its own process. It starts one command, adopts everything that descends from it, and exits when
// nothing is left. Only SIGKILL ends it earlier; then the daemon kills its orphans.
type supervisor struct {
	daemon *os.File      // connection to the daemon
	report *json.Encoder // writes notes to it
	leader *child

	alone atomic.Bool // the daemon is gone

	mu    sync.Mutex
	gone  bool         // the leader is reaped: its group number may be reused
	swept map[int]bool // processes that end killed, without the leader
}

// supervise runs a supervisor and returns its exit status. It must run on the initial thread: the leader is killed when
// that thread dies. It reports a refused start, the pid of the command, its exit, and finally the processes that it had
// to kill.
func supervise(daemon *os.File) (code int) {
	unix.CloseOnExec(int(daemon.Fd()))
	// Notify instead of Ignore: a command would inherit ignored signals.
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
		_ = s.report.Encode(note{Refusal: refusalOf(err)}) // fails only if the daemon is gone
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

// begin starts the command. When it returns, no file of the request is open in this process.
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
	if c.gateEnd != nil {
		defer c.gateEnd.Close()
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

// receive reads the request and its files. A stream that was not passed is the null device, which this process has as
// its own streams. io.EOF means that the daemon is gone.
func receive(daemon *os.File) (c Command, dir *os.File, err error) {
	var head [4]byte
	rights := make([]byte, unix.CmsgSpace(6*4))
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
	files := [6]*os.File{os.Stdin, os.Stdout, os.Stderr}
	for i, there := range r.Files {
		if there && len(fds) > 0 {
			files[i], fds = os.NewFile(uintptr(fds[0]), "passed"), fds[1:]
		}
	}
	return Command{
		Argv: r.Argv, Path: r.Path, Env: r.Env, Nonce: r.Nonce, Confine: r.Confine, apart: r.Apart, Terminal: r.Terminal,
		Stdin: files[0], Stdout: files[1], Stderr: files[2], Program: files[3], gateEnd: files[5],
	}, files[4], nil
}

// descriptors returns the files in a control message.
func descriptors(rights []byte) ([]int, error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) == 0 {
		return nil, os.NewSyscallError("recvmsg", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	return fds, os.NewSyscallError("recvmsg", err)
}

// lengthOf encodes the length of the request as four bytes.
func lengthOf(data []byte) []byte { return binary.BigEndian.AppendUint32(nil, uint32(len(data))) }

// obey carries out commands from the daemon. When the connection closes, it ends everything.
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

// signal signals the group, unless its number may already be reused.
func (s *supervisor) signal(how func(group)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.gone {
		how(s.leader.group)
	}
}

// end kills all descendants of this process until none is left, looking again every millisecond because they may fork.
// Then reap ends the process, and with it this loop; after endLimit, end exits anyway.
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

// reap reaps every child that ends, and returns when none is left. It reports the exit of the leader after its group is
// dead.
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
		unix.Wait4(pid, nil, 0, nil) // it has ended and no other code waits for it
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

// leaderEnded kills the group and then reaps the leader, in this order: until then the zombie keeps the group number
// from being reused. Processes that have left the group keep running; they are the supervisor's to adopt.
func (s *supervisor) leaderEnded() *exitNote {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leader.group.kill()
	err := s.leader.cmd.Wait()
	s.gone = true
	defer s.leader.gate.close()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return &exitNote{Code: -1}
	}
	exit := s.leader.gate.ended(s.leader.cmd.ProcessState)
	return &exitNote{Code: exit.Code, Signal: exit.Signal}
}

// endedChild waits for a child to end and leaves it unreaped. It fails when there are no children.
func endedChild() (pid int, err error) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if err == syscall.EINTR {
			continue
		}
		// The pid is the first field after the three numbers of the header, with pointer alignment.
		at := (3*unsafe.Sizeof(info.Signo) + unsafe.Sizeof(uintptr(0)) - 1) &^ (unsafe.Sizeof(uintptr(0)) - 1)
		return int(*(*int32)(unsafe.Add(unsafe.Pointer(&info), at))), err
	}
}
