package proc

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// initial is the first process of a child's process namespace: the gate, which stays there. It starts the program, passes signals on,
// reaps whatever loses its parent, and ends when the program ends. The kernel then kills everything in the namespace.
//
// The thread that starts the program is confined like it. The others are not, because they connect local sockets for it. So the process
// cannot be traced: the program shares its user, and otherwise it could change the memory of those threads.
type initial struct {
	replies *json.Encoder
	signals chan os.Signal
	program int // pid in the namespace
}

// reply is a message of a gate that stays as the first process of a namespace. One field is set.
type reply struct {
	Refusal *refusal `json:"refusal,omitempty"`
	Started bool     `json:"started,omitempty"` // the program runs
	Ended   *uint32  `json:"ended,omitempty"`   // its wait status
}

// passedOn are the signals that a supervisor sends to its command.
var passedOn = []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT}

// stay confines this thread, starts the program and waits for its end. It returns only an error, and only if the program did not start.
func (o *order) stay(replies *json.Encoder) error {
	runtime.LockOSThread() // from now on, new threads are not made from this one, which is going to be confined
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	in := &initial{replies: replies, signals: make(chan os.Signal, 16)}
	signal.Notify(in.signals, passedOn...)
	listener, err := o.confine()
	if err != nil {
		return err
	}
	if listener >= 0 {
		go broker{listener}.serve()
	}
	if in.program, err = o.begin(); err != nil {
		return err
	}
	letGo()
	_ = replies.Encode(reply{Started: true}) // fails only if the supervisor is gone; then the kernel ends this process
	go in.passOn()
	in.reap()
	return nil
}

// letGo closes the streams of the program in this process, so that only the program holds them, and leaves its directory.
func letGo() {
	if null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0); err == nil {
		for stream := range 3 {
			_ = unix.Dup3(null, stream, 0) // cannot fail: both are open
		}
	}
	_ = unix.Chdir("/") // the root can always be entered
}

// passOn sends signals for this process to the process group of the program. The program is not reaped before this process ends.
func (in *initial) passOn() {
	for s := range in.signals {
		_ = unix.Kill(-in.program, s.(unix.Signal)) // a group that is gone needs no signal
	}
}

// reap reaps every process that ends in the namespace. When the program has ended, it reports the status and ends this process.
func (in *initial) reap() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if pid == in.program || err != nil && !errors.Is(err, unix.EINTR) {
			_ = in.replies.Encode(reply{Ended: new(uint32(status))}) // fails only if the supervisor is gone
			os.Exit(0)
		}
	}
}

// ended returns how the program of a gate that stayed ended: what the first process reported, or how that one ended itself.
func (g *gate) ended(state *os.ProcessState) Exit {
	var r reply
	if g == nil || !g.order.Stay || g.said.Decode(&r) != nil || r.Ended == nil {
		return exitOf(state)
	}
	return exitFrom(syscall.WaitStatus(*r.Ended))
}

// begin starts the program as a child of this thread. The limit on memory holds for the program only: this process already uses more than
// some programs may. So the program stops before its first instruction, as traced programs do, until it has the limit.
func (o *order) begin() (pid int, err error) {
	attr := &syscall.ProcAttr{Env: o.Env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true, Setctty: o.Terminal, Ptrace: o.Limits.Memory > 0}}
	if pid, err = syscall.ForkExec(o.Path, o.Argv, attr); err != nil {
		return 0, &fs.PathError{Op: "exec", Path: o.Path, Err: err}
	}
	if !attr.Sys.Ptrace {
		return pid, nil
	}
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		_, err = unix.Wait4(pid, nil, 0, nil)
	}
	if err == nil {
		err = limit(pid, unix.RLIMIT_AS, uint64(o.Limits.Memory))
	}
	if err == nil {
		err = unix.PtraceDetach(pid)
	}
	return pid, os.NewSyscallError("limit the memory", err)
}
