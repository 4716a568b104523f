package proc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// supervised is a child as the daemon sees it: its supervisor, a process of its own, and the connection to it. The
// supervisor ends everything when the connection closes, so nothing needs to clean up after a killed daemon. follow is
// the only reader of the connection; it reaps the supervisor.
type supervised struct {
	cmd    *exec.Cmd // the supervisor process
	link   *os.File  // our end of the socket
	leader int       // pid of the command; set by follow before start returns
	output output
	// listener is for Command.Serve; nil: none.
	listener net.Listener
	exits    chan Exit     // receives one Exit; closed without one if the supervisor was killed
	over     chan struct{} // closed when the supervisor is reaped
	swept    []int         // processes that it killed after the leader; valid once over is closed
}

// note is a report of a supervisor. One field is set.
type note struct {
	Pid     int       `json:"pid,omitempty"` // of the command, once it runs
	Refusal *refusal  `json:"refusal,omitempty"`
	Exit    *exitNote `json:"exit,omitempty"`
	Swept   []int     `json:"swept,omitempty"`
}

// exitNote is an Exit in JSON.
type exitNote struct {
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"`
}

// Commands to a supervisor, one byte each.
const (
	toInterrupt = 'i'
	toTerminate = 't'
	toKill      = 'k' // kill the group
	toEnd       = 'e' // kill everything; closing the connection has the same effect
)

// supervisorTimeout is how long a supervisor may take to carry out a kill. After that it is killed itself.
const supervisorTimeout = 2 * time.Second

// launch starts c under a supervisor. It returns once the command runs, or with the reason why it does not.
func launch(c Command) (*supervised, error) {
	r, files, err := c.request()
	if err != nil {
		return nil, err
	}
	defer closeAll(files.opened)
	s, err := family.supervisor(c.Nonce)
	if err != nil {
		return nil, err
	}
	if err := s.start(c, r, files); err != nil {
		s.link.Close()
		s.output.abandon()
		return nil, err
	}
	family.spare.starting.Go(func() { family.keepSpare(c.Nonce) })
	return s, nil
}

// start sends the request and waits for the first report: the pid of the command, or why it did not start. Then it
// starts to copy output.
func (s *supervised) start(c Command, r *request, files passed) error {
	streams, feed, err := s.output.connect(c)
	if err == nil {
		err = s.send(r, append(streams[:], files.files[:]...))
	}
	said := json.NewDecoder(s.link)
	first := make(chan error, 1)
	go s.follow(said, first)
	if err != nil {
		return err
	}
	if err := <-first; err != nil {
		return err
	}
	if c.Serve != nil {
		if s.listener, err = receiveListener(files.ours); err != nil {
			return err
		}
	}
	s.output.begin(feed)
	return nil
}

// follow reads the reports until the supervisor ends, and reaps it. The first report goes to first.
func (s *supervised) follow(said *json.Decoder, first chan<- error) {
	defer close(s.over)
	clean := false
	for {
		var n note
		if said.Decode(&n) != nil {
			break
		}
		switch {
		case n.Refusal != nil:
			clean = true
			first <- n.Refusal.err()
		case n.Pid != 0:
			s.leader = n.Pid
			first <- nil
		case n.Exit != nil:
			clean = true
			s.exits <- Exit{Code: n.Exit.Code, Signal: n.Exit.Signal}
		default:
			s.swept = n.Swept
		}
	}
	if s.leader == 0 && !clean {
		first <- errSupervisor
	}
	close(s.exits)
	s.reap()
}

// errSupervisor means that a supervisor was killed or could not run.
var errSupervisor = errors.New("its supervisor was killed")

// reap waits for the supervisor. If it was killed, its orphans come to this process, if that is a subreaper.
func (s *supervised) reap() {
	s.cmd.Wait() // ProcessState has all that matters
	family.forget(s)
	s.link.Close()
	if !s.cmd.ProcessState.Success() {
		family.endOrphans()
	}
}

func (s *supervised) pid() int { return s.leader }

func (s *supervised) interrupt() { s.tell(toInterrupt) }
func (s *supervised) terminate() { s.tell(toTerminate) }

// kill kills the group. A supervisor that does not react, for example because it was stopped with SIGSTOP, is killed,
// and the leader dies with it.
func (s *supervised) kill() { s.tell(toKill); s.killAfterTimeout() }

// end kills everything that descends from the child. The supervisor exits when nothing is left.
func (s *supervised) end() { s.tell(toEnd); s.killAfterTimeout() }

// killAfterTimeout kills the supervisor if it still runs after supervisorTimeout.
func (s *supervised) killAfterTimeout() {
	go func() {
		select {
		case <-s.over:
		case <-time.After(supervisorTimeout):
			s.cmd.Process.Kill() // fails only if it has ended
		}
	}()
}

// tell sends a command byte. It returns no error: if the write fails, the supervisor is dead, and follow notices.
func (s *supervised) tell(what byte) { s.link.Write([]byte{what}) }

// await waits for the end of the leader; after a stop, also for the end of all its descendants. Without a stop,
// processes that left the group may keep running. It returns once the output is complete or Drain has run out.
func (s *supervised) await(ctx context.Context, c Command, interrupts <-chan struct{}) (Exit, error) {
	var ladder sync.WaitGroup
	var cause error
	exited := make(chan struct{})
	defer s.serve(context.WithoutCancel(ctx), c)()
	ladder.Go(func() { cause = endOn(ctx, s, exited, interrupts, c.Grace) })
	exit, known := <-s.exits
	close(exited)
	ladder.Wait()
	if cause != nil {
		s.end()
	}
	if cause != nil || !known {
		<-s.over
	}
	escaped, err := s.output.finish(c.Drain)
	if err != nil {
		err = fmt.Errorf("copy output of %s: %w", c.Argv[0], err)
	}
	if !known {
		exit = Exit{Code: -1, Signal: "SIGKILL"} // the leader dies with its supervisor
	}
	exit.Escaped, exit.Cause = escaped, cause
	return exit, err
}

// request describes to a supervisor what to run. The files follow in the order of Files.
type request struct {
	Argv     []string     `json:"argv"`
	Path     string       `json:"path"`
	Env      []string     `json:"env"`
	Nonce    string       `json:"nonce,omitempty"`
	Confine  *Confinement `json:"confine,omitempty"`
	Apart    bool         `json:"apart,omitempty"`
	Terminal bool         `json:"terminal,omitempty"`
	Files    [6]bool      `json:"files"` // which are present: stdin, stdout, stderr, program, directory, end for the listening socket
}

// passed holds the files of a request besides the streams.
type passed struct {
	files  [3]*os.File // program, directory, end for the listening socket
	opened []*os.File  // those that we opened and must close
	ours   *os.File    // where the listening socket arrives; one of opened
}

// request resolves what depends on this process: the program by its PATH, and the directory, which is opened so that it
// cannot be replaced.
func (c Command) request() (*request, passed, error) {
	r := &request{Argv: c.Argv, Env: c.Env, Nonce: c.Nonce, Confine: c.Confine, Terminal: c.Terminal}
	files := passed{}
	var err error
	if r.Apart, err = c.isApart(); err == nil {
		err = c.checkServe()
	}
	if err != nil {
		return nil, files, err
	}
	if files.files[0] = c.Program; c.Program == nil {
		cmd := exec.Command(cmp.Or(c.Path, c.Argv[0]))
		if cmd.Err != nil {
			return nil, files, cmd.Err
		}
		r.Path = cmd.Path
	}
	if files.files[1] = c.OpenDir; c.OpenDir == nil && c.Dir != "" {
		dir, err := os.OpenFile(c.Dir, unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return nil, files, err
		}
		files.files[1], files.opened = dir, []*os.File{dir}
	}
	if c.Serve != nil {
		ours, theirs, err := listenPair()
		if err != nil {
			closeAll(files.opened)
			return nil, files, err
		}
		files.ours, files.files[2], files.opened = ours, theirs, append(files.opened, ours, theirs)
	}
	return r, files, nil
}

// newSupervisor starts a supervisor, which then waits for its request.
func newSupervisor(nonce string) (*supervised, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	if err := unix.SetNonblock(pair[0], true); err != nil {
		return nil, errors.Join(os.NewSyscallError("fcntl", err), unix.Close(pair[0]), unix.Close(pair[1]))
	}
	theirs := os.NewFile(uintptr(pair[1]), "supervisor")
	defer theirs.Close()
	s := &supervised{link: os.NewFile(uintptr(pair[0]), "supervisor"), exits: make(chan Exit, 1), over: make(chan struct{})}
	if err := family.start(s, func() *exec.Cmd { return supervisorCommand(nonce, theirs) }); err != nil {
		s.link.Close()
		return nil, err
	}
	return s, nil
}

// supervisorCommand returns the command that runs this program as a supervisor.
func supervisorCommand(nonce string, link *os.File) *exec.Cmd {
	return &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{supervisorName}, Dir: "/", ExtraFiles: []*os.File{link},
		// Two of its threads wait and do little else. The command does not inherit this environment.
		Env:         []string{supervisorVariable + "=" + nonce, "GOMAXPROCS=2", raceOptions()},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
}

// raceOptions returns the environment entry with the options of the race detector, for processes that run this program. It is
// for tests: a program that is built with the detector sleeps for a second at exit by default.
func raceOptions() string { return "GORACE=" + os.Getenv("GORACE") }

// send sends the request: its length together with the files, then the JSON. It sets r.Files. The descriptors are
// duplicated for the supervisor; the caller still closes its own.
func (s *supervised) send(r *request, files []*os.File) error {
	var fds []int
	for i, f := range files {
		if r.Files[i] = f != nil; f != nil {
			fds = append(fds, int(f.Fd()))
		}
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	conn, err := s.link.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Write(func(fd uintptr) bool {
		failed = unix.Sendmsg(int(fd), lengthOf(data), unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
		return !errors.Is(failed, unix.EAGAIN)
	})
	if err = errors.Join(err, os.NewSyscallError("sendmsg", failed)); err != nil {
		return err
	}
	_, err = s.link.Write(data)
	return err
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close() // opened only to be passed on
	}
}
