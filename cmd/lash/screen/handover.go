package screen

import (
	"io"
)

// handover implements tea.ExecCommand: Bubble Tea stops reading keys, calls Run in
// the event loop, and reads keys again.
type handover struct {
	loop *loop
	run  func() error
}

// Run gives the terminal away while run runs.
func (h *handover) Run() error {
	l := h.loop
	l.model.Draw(l.screen)
	_ = l.screen.Clear()
	if err := l.terminal.give(); err != nil {
		return err
	}
	err := h.run()
	if failed := l.terminal.take(); err == nil {
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
