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

// family tracks the children of this process. A subreaper also gets children that it did not start: orphans of a killed
// supervisor, and what detached commands leave behind.
var family = relations{own: map[int]bool{}, supervised: map[*supervised]string{}, detached: map[int]bool{}, cgroup: cgroup{err: errNoCgroup}}

// relations is the registry of children. Lock starting before mu. starting keeps reapAdopted from taking a child that is just
// being started for an orphan.
type relations struct {
	spare      spare
	cgroup     cgroup
	starting   sync.RWMutex // read-locked while a child is started, write-locked while orphans are searched
	mu         sync.Mutex
	own        map[int]bool           // children that this process started
	supervised map[*supervised]string // supervisors with the nonces of their commands
	detached   map[int]bool           // session ids of detached commands
	subreaper  atomic.Bool            // this process adopts orphans
	lost       atomic.Bool            // a supervisor was killed: unknown children must be killed
}

// AdoptOrphans makes this process adopt, kill and reap what a killed supervisor leaves behind, until stop is called.
// Call it only in a process that starts all its children with this package: it reaps any other child, too.
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

// reapOrphans searches for adopted children, if there can be any.
func (r *relations) reapOrphans() {
	r.mu.Lock()
	possible := len(r.detached) > 0 || r.lost.Load()
	r.mu.Unlock()
	if possible {
		r.reapAdopted()
	}
}

// Detached runs cmd, which must lead its own session, and waits for it. lashd never kills processes that stay in that
// session, or that carry the mark added to the environment.
func Detached(cmd *exec.Cmd, nonce string) error {
	cmd.Env = append(cmd.Env, detachedVariable+"="+nonce)
	return family.runDetached(cmd)
}

// start starts a supervisor and registers it as a child of this process.
func (r *relations) start(s *supervised, command func() *exec.Cmd) (err error) {
	r.starting.RLock()
	defer r.starting.RUnlock()
	if s.cmd, err = r.cgroup.start(command); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own[s.cmd.Process.Pid] = true
	return nil
}

// forget removes a supervisor that has been reaped.
func (r *relations) forget(s *supervised) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.own, s.cmd.Process.Pid)
	delete(r.supervised, s)
}

// runDetached runs a command and remembers its session, so that the processes that stay in it are isDetached.
func (r *relations) runDetached(cmd *exec.Cmd) error {
	r.starting.RLock()
	defer r.starting.RUnlock()
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

// byNonce returns the supervisors of commands with the nonce, including nonces with a suffix.
func (r *relations) byNonce(nonce string) (found []*supervised) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s, its := range r.supervised {
		if rest, ok := strings.CutPrefix(its, nonce); ok && (rest == "" || rest[0] == '/') {
			found = append(found, s)
		}
	}
	return found
}

// end ends everything below the supervisors with the nonce, waits for them, and returns the pids of processes that they
// had to kill.
func (r *relations) end(nonce string) (swept []int) {
	if nonce == root(nonce) {
		r.spare.dropAll()
	}
	all := r.byNonce(nonce)
	for _, s := range all {
		s.end()
	}
	for _, s := range all {
		<-s.over
		swept = append(swept, s.swept...)
	}
	return swept
}

// endOrphans kills what killed supervisors have left to this process. It repeats the search while it finds processes,
// because a killed process may leave children too.
func (r *relations) endOrphans() {
	if !r.subreaper.Load() {
		return
	}
	r.lost.Store(true)
	for limit := time.Now().Add(supervisorTimeout); r.reapAdopted() && time.Now().Before(limit); time.Sleep(time.Millisecond) {
	}
}

// reapAdopted reaps ended children that this process did not start. If a supervisor was killed, it also kills the living
// ones, except those of detached commands. It reports whether it found living ones.
func (r *relations) reapAdopted() (found bool) {
	r.starting.Lock()
	defer r.starting.Unlock()
	all, err := allProcesses()
	if err != nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for pid, s := range all {
		switch {
		case s.parent != unix.Getpid() || r.own[pid]:
		case s.state == 'Z':
			unix.Wait4(pid, nil, unix.WNOHANG, nil) // no other code waits for it
		case r.lost.Load() && !r.isDetached(all, pid):
			found = true
			for _, p := range append(descendants(all, pid), pid) {
				killSame(p, all[p])
			}
		}
	}
	return found
}

// isDetached reports whether a process belongs to a detached command, by its session or its mark.
func (r *relations) isDetached(all map[int]status, pid int) bool {
	return r.detached[all[pid].session] || variable(pid, detachedVariable) != ""
}
