package screen

import (
	"errors"
	"io"

	tea "charm.land/bubbletea/v2"
)

// handover implements tea.ExecCommand: Bubble Tea stops reading keys, calls Run in
// the event loop, and reads keys again.
type handover struct {
	loop *loop
	run  func() error
}

// handOver returns a command that gives the terminal away while run runs, and then sends the
// message that done makes of its error. It stops the keys here: Bubble Tea waits for the end
// of its read loop before it calls Run.
func (l *loop) handOver(run func() error, done func(error) tea.Msg) tea.Cmd {
	l.keys.stop()
	return tea.Exec(&handover{loop: l, run: run}, done)
}

// Run gives the terminal away while run runs.
func (h *handover) Run() error {
	l := h.loop
	l.model.Draw(l.screen)
	_ = l.screen.Clear()
	if err := l.terminal.give(); err != nil {
		return errors.Join(err, l.keys.start())
	}
	err := h.run()
	if failed := errors.Join(l.terminal.take(), l.keys.start()); err == nil {
		err = failed
	}
	l.screen.Forget()
	l.model.Draw(l.screen)
	l.paint()
	return err
}

// SetStdin implements tea.ExecCommand. The program gets the files of the terminal
// instead.
func (*handover) SetStdin(io.Reader) {}

// SetStdout implements tea.ExecCommand.
func (*handover) SetStdout(io.Writer) {}

// SetStderr implements tea.ExecCommand.
func (*handover) SetStderr(io.Writer) {}
