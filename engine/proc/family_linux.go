package proc

import (
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// family are the children of this process. A subreaper also gets those that it did not start: orphans of a supervisor that was
// killed, and what detached commands leave.
var family = relations{own: map[int]bool{}, supervised: map[*supervised]string{}, detached: map[int]bool{}, cgroup: cgroup{err: errNoCgroup}}

type relations struct {
	spare      spare
	cgroup     cgroup
	births     sync.RWMutex // read by who starts a child, until it is known; written by who looks for others
	mu         sync.Mutex
	own        map[int]bool           // children that this process started
	supervised map[*supervised]string // by the nonces of their commands
	detached   map[int]bool           // sessions of detached commands
	subreaper  atomic.Bool
	lost       atomic.Bool // a supervisor was killed: what is nobody's is to be killed
}

// AdoptOrphans has this process adopt what a killed supervisor leaves, kill it, and reap it, until stop is called. Call it in a process that
// starts its children with this package only.
func AdoptOrphans() (stop func(), err error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return func() {}, os.NewSyscallError("prctl", err)
	}
	family.subreaper.Store(true)
	died, over := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(died, unix.SIGCHLD)
	go func() {
		defer close(over)
		for range died {
			family.reapOrphans()
		}
	}()
	return func() {
		signal.Stop(died)
		close(died)
		<-over
		family.subreaper.Store(false)
		family.spare.dropAll()
		family.reapOrphans()
	}, nil
}

// reapOrphans looks for children that nobody started, if there can be any.
func (r *relations) reapOrphans() {
	r.mu.Lock()
	possible := len(r.detached) > 0 || r.lost.Load()
	r.mu.Unlock()
	if possible {
		r.adopted()
	}
}

// Detached runs cmd, which leads a session of its own, to its end. This process never kills what is left of that session, nor what bears the
// mark that is added to its environment.
func Detached(cmd *exec.Cmd, nonce string) error {
	cmd.Env = append(cmd.Env, detachedVariable+"="+nonce)
	return family.runDetached(cmd)
}

func (r *relations) start(s *supervised, command func() *exec.Cmd) (err error) {
	r.births.RLock()
	defer r.births.RUnlock()
	if s.cmd, err = r.cgroup.start(command); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own[s.cmd.Process.Pid] = true
	return nil
}

func (r *relations) forget(s *supervised) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.own, s.cmd.Process.Pid)
	delete(r.supervised, s)
}

// runDetached runs a command that leaves a session of its own behind, which this process is not to end.
func (r *relations) runDetached(cmd *exec.Cmd) error {
	r.births.RLock()
	defer r.births.RUnlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	r.mu.Lock()
	r.own[cmd.Process.Pid], r.detached[cmd.Process.Pid] = true, true
	r.mu.Unlock()
	err := cmd.Wait()
	r.mu.Lock()
	delete(r.own, cmd.Process.Pid)
	r.mu.Unlock()
	return err
}

// of are the supervisors of commands with a nonce, as Sweep has it.
func (r *relations) of(nonce string) (found []*supervised) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s, its := range r.supervised {
		if rest, ok := strings.CutPrefix(its, nonce); ok && (rest == "" || rest[0] == '/') {
			found = append(found, s)
		}
	}
	return found
}

// end ends everything that supervisors of a nonce have under them, and returns the pids of what was left of it.
func (r *relations) end(nonce string) (swept []int) {
	if nonce == root(nonce) {
		r.spare.dropAll()
	}
	all := r.of(nonce)
	for _, s := range all {
		s.end()
	}
	for _, s := range all {
		<-s.over
		swept = append(swept, s.swept...)
	}
	return swept
}

// endOrphans kills what killed supervisors have left to this process. It looks again while it finds something, as what is killed
// may leave children, too.
func (r *relations) endOrphans() {
	if !r.subreaper.Load() {
		return
	}
	r.lost.Store(true)
	for limit := time.Now().Add(supervisorPatience); r.adopted() && time.Now().Before(limit); time.Sleep(time.Millisecond) {
	}
}

// adopted reaps children that this process did not start. It kills those that live, if a supervisor was killed and they belong to no detached
// command, and tells whether there were any.
func (r *relations) adopted() (found bool) {
	r.births.Lock()
	defer r.births.Unlock()
	all, err := everything()
	if err != nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for pid, s := range all {
		switch {
		case s.parent != unix.Getpid() || r.own[pid]:
		case s.state == 'Z':
			unix.Wait4(pid, nil, unix.WNOHANG, nil) // nobody else waits for it
		case r.lost.Load() && !r.spared(all, pid):
			found = true
			for _, p := range append(descendants(all, pid), pid) {
				killSame(p, all[p])
			}
		}
	}
	return found
}

// spared tells whether a process belongs to a detached command, by its session or by its mark.
func (r *relations) spared(all map[int]status, pid int) bool {
	return r.detached[all[pid].session] || variable(pid, detachedVariable) != ""
}
