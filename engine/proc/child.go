package proc

import (
	"errors"
	"os/exec"
)

// child is a command that this process has started itself: a supervisor does so on Linux, the daemon elsewhere. The
// process that started it must reap it.
type child struct {
	cmd    *exec.Cmd
	group  group // its process group, to end it
	gate   *gate // nil: it is not confined
	output output
}

func (ch *child) pid() int { return ch.cmd.Process.Pid }

// spawn starts c. On Linux the child is killed when the calling thread dies, so call it on a thread that lives as long
// as the child. A sandboxed child that is not apart gets its own mount namespace only if the system allows it.
func (c Command) spawn() (*child, error) {
	if c.Confine == nil || c.Confine.Sandbox == nil {
		return c.begin(func(*exec.Cmd) {})
	}
	ch, err := c.begin(c.isolate)
	if err != nil && !c.apart && refusesNamespaces(err) {
		ch, err = c.begin(func(*exec.Cmd) {})
	}
	return ch, err
}

// begin starts c after prepare has changed the exec.Cmd. It returns once the child has passed the gate and runs its
// program. On an error nothing is left running, and the streams are closed.
func (c Command) begin(prepare func(*exec.Cmd)) (*child, error) {
	ch := &child{cmd: c.cmd()}
	var err error
	ch.gate, err = c.confined(ch.cmd)
	if err != nil {
		return nil, err
	}
	prepare(ch.cmd)
	feed, err := ch.connect(c)
	if err == nil {
		err = ch.cmd.Start()
	}
	if err != nil {
		ch.gate.close()
		ch.output.abandon()
		return nil, err
	}
	ch.output.begin(feed)
	ch.group, err = newGroup(ch.cmd.Process)
	if passed := ch.gate.pass(); err == nil {
		err = passed
	}
	if err != nil {
		err = errors.Join(err, ch.cmd.Process.Kill())
		ch.output.finish(c.Drain)
		ch.cmd.Wait() // it was killed on purpose: its exit status says nothing new
		ch.gate.close()
		return nil, err
	}
	return ch, nil
}

// connect sets the child's three streams. The function that it returns, if any, copies Stdin to the child.
func (ch *child) connect(c Command) (feed func(), err error) {
	files, feed, err := ch.output.connect(c)
	if err != nil {
		return nil, err
	}
	if files[0] != nil {
		ch.cmd.Stdin = files[0]
	}
	if files[1] != nil {
		ch.cmd.Stdout = files[1]
	}
	if files[2] != nil {
		ch.cmd.Stderr = files[2]
	}
	return feed, nil
}
