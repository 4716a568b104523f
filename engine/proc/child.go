package proc

import (
	"errors"
	"os/exec"
)

// child is a command that this process has started itself, with what it takes to end it.
type child struct {
	cmd    *exec.Cmd
	group  group
	output output
}

func (ch *child) pid() int { return ch.cmd.Process.Pid }

// spawn starts c. On Linux the calling thread becomes the one whose death kills the child. A sandboxed child has mounts of its own where
// the system gives it some.
func (c Command) spawn() (*child, error) {
	if c.Confine == nil || c.Confine.Sandbox == nil {
		return c.begin(func(*exec.Cmd) {})
	}
	ch, err := c.begin(isolate)
	if err != nil && refusesNamespaces(err) {
		ch, err = c.begin(func(*exec.Cmd) {})
	}
	return ch, err
}

func (c Command) begin(prepare func(*exec.Cmd)) (*child, error) {
	ch := &child{cmd: c.cmd()}
	gate, err := c.confined(ch.cmd)
	if err != nil {
		return nil, err
	}
	prepare(ch.cmd)
	feed, err := ch.connect(c)
	if err == nil {
		err = ch.cmd.Start()
	}
	if err != nil {
		gate.close()
		ch.output.abandon()
		return nil, err
	}
	ch.output.begin(feed)
	ch.group, err = newGroup(ch.cmd.Process)
	if passed := gate.pass(); err == nil {
		err = passed
	}
	if err != nil {
		err = errors.Join(err, ch.cmd.Process.Kill())
		ch.output.finish(c.Drain)
		ch.cmd.Wait() // it was killed: only the reason for that is news
		return nil, err
	}
	return ch, nil
}

// connect sets the three streams of the child. The function it returns, if any, writes to the child's input.
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
