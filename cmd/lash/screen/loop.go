package screen

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
)

// Model is a program on a terminal, in the architecture of Bubble Tea. All methods
// are called by the event loop, one at a time.
type Model interface {
	// Init returns the first command.
	Init() tea.Cmd
	// Update handles a message. It must not block: what waits is in the command
	// that it returns.
	Update(msg tea.Msg) tea.Cmd
	// Draw commits the lines that are finished, and sets the live area or the whole
	// screen.
	Draw(s *Screen)
}

const (
	// frameTime is the shortest time between two frames.
	frameTime = 16 * time.Millisecond
	// keyTime is that time after a key was pressed.
	keyTime = 4 * time.Millisecond
	// moveTime is the shortest time between two frames that move the live area, unless a
	// key was pressed. The fewer there are, the seldomer one is on its way while the
	// terminal is resized.
	moveTime = 50 * time.Millisecond
	// settleTime is the time without frames after the terminal was resized. While the user drags
	// the border of a window, the size that the process knows is out of date. tmux
	// tells a second size up to 250 ms late.
	settleTime = 300 * time.Millisecond
	// reportTime is the longest wait for the report of the terminal at which width it has painted a frame,
	// before the next one that moves the live area.
	reportTime = 2 * time.Second
	// checkPause is the time between two questions for the width of the terminal.
	checkPause = 50 * time.Millisecond
)

// Run shows a program on the terminal of in and out until it quits or ctx is done.
// It always restores the terminal and keeps the committed lines in the scrollback. A
// panic of the program is reported on stderr and returned as an error.
func Run(ctx context.Context, m Model, in, out *os.File) error {
	env := os.Environ()
	t, err := openTerminal(in, out, env)
	if err != nil {
		return err
	}
	s := New(out, colorprofile.Detect(out, env), env)
	s.size = t.size
	s.Resize(t.size())
	if err := t.take(); err != nil {
		return errors.Join(err, t.give())
	}
	if !t.simple {
		s.Send(ansi.RequestBackgroundColor)
	}
	l := &loop{model: m, screen: s, terminal: t, keys: newKeys(in)}
	if err := l.keys.start(); err != nil {
		return errors.Join(err, t.give())
	}
	l.width, l.height = t.size()
	// Bubble Tea reads the keys and runs the commands. Its renderer is not exact in
	// the scrollback. Without one its clock has nothing to do, and ticks once a second.
	p := tea.NewProgram(l, tea.WithContext(ctx), tea.WithInput(l.keys), tea.WithOutput(out), tea.WithoutSignalHandler(),
		tea.WithoutRenderer(), tea.WithFPS(1), tea.WithWindowSize(s.width, s.height))
	watching := l.watch(p)
	_, err = p.Run()
	watching()
	l.keys.stop() // what the user types from here on is for the shell
	if errors.Is(err, tea.ErrProgramPanic) {
		_, _ = out.WriteString("\r\n")
		return errors.Join(err, t.give())
	}
	if err != nil && ctx.Err() != nil {
		err = nil
	}
	m.Draw(s)
	return errors.Join(err, s.Clear(), t.give())
}

// loop is the tea.Model of a Model. It paints after each message, as soon as wait
// allows.
type loop struct {
	model    Model
	screen   *Screen
	terminal *terminal
	keys     *keys
	painted  time.Time // when the last frame was painted
	moved    time.Time // when the last frame that moved the live area was painted
	due      time.Time // when a frameMsg arrives; zero: none will
	typed    bool      // a key was pressed since the last frame

	width, height int       // of the terminal, when wait looked last
	resized       time.Time // when wait saw that they had changed
	checked       time.Time // when the terminal was asked for its width last
}

// The messages of the loop besides those of its model.
type (
	// frameMsg paints the frame that was put off.
	frameMsg struct{}
	// stopMsg stops the process, as Ctrl-Z does in other programs.
	stopMsg struct{}
	// continuedMsg says that the process was stopped and continues.
	continuedMsg struct{}
	// execMsg runs a program on the terminal.
	execMsg struct {
		cmd  *exec.Cmd
		done func(error) tea.Msg
	}
)

// Init implements tea.Model.
func (l *loop) Init() tea.Cmd { return l.model.Init() }

// View implements tea.Model. Nothing renders it.
func (l *loop) View() tea.View { return tea.View{} }

// Update implements tea.Model. A panic returns to the main screen, where Bubble Tea reports it.
func (l *loop) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	ended := false
	defer func() {
		if !ended {
			_, _ = l.screen.out.Write([]byte(l.screen.leaveFull()))
		}
	}()
	cmd := l.update(msg)
	ended = true
	return l, cmd
}

// update handles a message.
func (l *loop) update(msg tea.Msg) tea.Cmd {
	switch m := msg.(type) {
	case frameMsg:
		l.due = time.Time{}
		return l.frame()
	case stopMsg:
		return l.handOver(l.stop, nil)
	case execMsg:
		run := func() error {
			m.cmd.Stdin, m.cmd.Stdout, m.cmd.Stderr = l.terminal.in, l.terminal.out, l.terminal.out
			return m.cmd.Run()
		}
		return l.handOver(run, m.done)
	case tea.KeyPressMsg:
		l.typed = true
	case continuedMsg:
		l.continued()
	case tea.CursorPositionMsg:
		l.screen.painted(m.X + 1)
		return l.frame()
	case tea.WindowSizeMsg:
		m.Width, m.Height = l.terminal.size()
		l.screen.Resize(m.Width, m.Height)
		msg = m
	}
	cmd := l.model.Update(msg)
	return tea.Batch(cmd, l.frame())
}

// frame paints, or returns the command that does so as soon as wait allows.
func (l *loop) frame() tea.Cmd {
	l.model.Draw(l.screen)
	wait := l.wait()
	if wait <= 0 {
		wait = l.checkWait()
	}
	if wait <= 0 {
		l.paint()
		return nil
	}
	due := time.Now().Add(wait)
	if !l.due.IsZero() && !due.Before(l.due) {
		return nil
	}
	l.due = due
	return tea.Tick(wait, func(time.Time) tea.Msg { return frameMsg{} })
}

// wait returns the time until the next frame may be painted. It asks the terminal
// for its size.
func (l *loop) wait() time.Duration {
	if w, h := l.terminal.size(); w != l.width || h != l.height {
		l.width, l.height, l.resized, l.screen.checked = w, h, time.Now(), 0
	}
	wait, moves := settleTime-time.Since(l.resized), l.screen.moves()
	if moves {
		wait = max(wait, l.reportWait())
	}
	switch {
	case l.typed:
		return max(wait, keyTime-time.Since(l.painted))
	case moves:
		wait = max(wait, moveTime-time.Since(l.moved))
	}
	return max(wait, frameTime-time.Since(l.painted))
}

// reportWait returns the time to wait for a report of the terminal. If the report does not come in time, the terminal sends none.
func (l *loop) reportWait() time.Duration {
	wait := reportTime - time.Since(l.moved)
	if !l.screen.asked {
		return 0
	}
	if wait <= 0 {
		l.screen.unanswered()
	}
	return wait
}

// checkWait returns the time to wait until the terminal has the width that the process knows, and asks it for its width.
func (l *loop) checkWait() time.Duration {
	s, since := l.screen, time.Since(l.checked)
	switch {
	case !s.unsure() || time.Since(l.resized) > settleTime+2*reportTime: // it reports something else
		return 0
	case s.checking && since < reportTime:
		return reportTime - since
	case s.checking:
		s.unanswered()
		return 0
	case since < checkPause:
		return checkPause - since
	}
	s.check()
	l.checked = time.Now()
	return reportTime
}

// paint paints what was drawn. A terminal that cannot be written to is gone; the signal that then
// comes ends the program.
func (l *loop) paint() {
	l.painted, l.typed = time.Now(), false
	if l.screen.moves() {
		l.moved = l.painted
	}
	_ = l.screen.Paint()
}

// continued takes the terminal back after a stop that the program did not ask for.
// If a shell used the terminal, the frame starts below its output.
func (l *loop) continued() {
	if l.terminal.lost() {
		l.terminal.before = nil
		_ = l.terminal.take()
		_, _ = l.screen.out.Write([]byte(l.screen.leaveFull()))
		l.screen.Forget()
	}
}

// Exec returns a command that gives the terminal to a program, such as an editor,
// and then sends the message that done makes of its error. The event loop waits
// for the program.
func Exec(cmd *exec.Cmd, done func(error) tea.Msg) tea.Cmd {
	return func() tea.Msg { return execMsg{cmd, done} }
}

// Stop is a command that stops the process until the shell continues it.
func Stop() tea.Msg { return stopMsg{} }
