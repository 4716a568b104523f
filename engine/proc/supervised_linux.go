package proc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// supervised is a child seen from this process: its supervisor, and the connection to it. The supervisor ends everything
// when the connection does, so that a killed daemon needs nobody to clean up after it.
type supervised struct {
	cmd    *exec.Cmd // the supervisor
	link   *os.File  // our end of the socket
	leader int
	output output
	exits  chan Exit     // has room for the one that comes; closed without one if the supervisor was killed
	over   chan struct{} // closed when the supervisor is reaped
	swept  []int         // processes that it killed after the leader; good once over is closed
}

// note is what a supervisor reports.
type note struct {
	Pid     int      `json:"pid,omitempty"` // of the command, once it runs
	Refusal *refusal `json:"refusal,omitempty"`
	Exit    *ended   `json:"exit,omitempty"`
	Swept   []int    `json:"swept,omitempty"`
}

// ended is the wire form of an Exit.
type ended struct {
	Code   int    `json:"code"`
	Signal string `json:"signal,omitempty"`
}

// Bytes that are sent to a supervisor.
const (
	toInterrupt = 'i'
	toTerminate = 't'
	toKill      = 'k' // the group
	toEnd       = 'e' // everything; the end of the connection says the same
)

// supervisorPatience is how long a supervisor may take to kill what it is told to. Afterwards it is killed itself.
const supervisorPatience = 2 * time.Second

// launch has a supervisor start c.
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
	s.output.begin(feed)
	return nil
}

// follow reads what the supervisor reports until it has ended, and reaps it.
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

// errSupervisor means that a supervisor was killed, or could not run.
var errSupervisor = errors.New("its supervisor was killed")

// reap waits for the supervisor. What one that was killed leaves behind comes to this process, if it is a subreaper.
func (s *supervised) reap() {
	s.cmd.Wait() // only whether it ended by itself is news
	family.forget(s)
	s.link.Close()
	if !s.cmd.ProcessState.Success() {
		family.endOrphans()
	}
}

func (s *supervised) pid() int { return s.leader }

func (s *supervised) interrupt() { s.tell(toInterrupt) }
func (s *supervised) terminate() { s.tell(toTerminate) }

// kill kills the group. A supervisor that does not obey was stopped by somebody, and is killed: then the leader dies with it.
func (s *supervised) kill() { s.tell(toKill); s.orElse() }

// end kills everything that descends from the child. The supervisor exits when nothing is left.
func (s *supervised) end() { s.tell(toEnd); s.orElse() }

// orElse kills the supervisor if it is still there after a while.
func (s *supervised) orElse() {
	go func() {
		select {
		case <-s.over:
		case <-time.After(supervisorPatience):
			s.cmd.Process.Kill() // fails only if it is over
		}
	}()
}

// tell has no error to give: a supervisor that hears nothing is dead, and follow sees that.
func (s *supervised) tell(what byte) { s.link.Write([]byte{what}) }

// await waits for the end of the leader, and of everything if the child is stopped.
func (s *supervised) await(ctx context.Context, c Command, interrupts <-chan struct{}) (Exit, error) {
	var ladder sync.WaitGroup
	var cause error
	exited := make(chan struct{})
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

// request is what a supervisor is asked to run. The files follow it in the order of their names.
type request struct {
	Argv     []string     `json:"argv"`
	Path     string       `json:"path"`
	Env      []string     `json:"env"`
	Nonce    string       `json:"nonce,omitempty"`
	Confine  *Confinement `json:"confine,omitempty"`
	Terminal bool         `json:"terminal,omitempty"`
	Files    [5]bool      `json:"files"` // which are there: stdin, stdout, stderr, program, directory
}

// passed are files that go with a request, besides the streams.
type passed struct {
	files  [2]*os.File // program, directory
	opened []*os.File  // of these, those to close
}

// request resolves what can be resolved only here: the program by PATH, and the directory, whatever is at its path later.
func (c Command) request() (*request, passed, error) {
	r := &request{Argv: c.Argv, Env: c.Env, Nonce: c.Nonce, Confine: c.Confine, Terminal: c.Terminal}
	files := passed{}
	if c.Confine != nil {
		if err := c.Confine.demand(Confines()); err != nil {
			return nil, files, err
		}
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
	return r, files, nil
}

// newSupervisor starts one, which waits for its request.
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

func supervisorCommand(nonce string, link *os.File) *exec.Cmd {
	return &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{supervisorName}, Dir: "/", ExtraFiles: []*os.File{link},
		// Two threads of it wait, and do little else. Nothing of this reaches the command.
		// GORACE is for tests: a program that looks for races sleeps for a second before it exits, unless told otherwise.
		Env:         []string{supervisorVariable + "=" + nonce, "GOMAXPROCS=2", "GORACE=" + os.Getenv("GORACE")},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
}

// send passes the request with the files. The length comes first, and the files with it.
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
		f.Close() // only opened to be passed on
	}
}
