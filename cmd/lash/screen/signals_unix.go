//go:build unix

package screen

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
)

// watch sends p the signals of the terminal, until the returned function is
// called.
func (l *loop) watch(p *tea.Program) (end func()) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGWINCH, syscall.SIGCONT)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case s := <-signals:
				p.Send(messageOf(s))
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
		<-ended
	}
}

// messageOf returns the message of a signal of the terminal.
func messageOf(s os.Signal) tea.Msg {
	if s == syscall.SIGCONT {
		return continuedMsg{}
	}
	return tea.WindowSizeMsg{} // the loop asks the terminal for its size
}

// stop stops the processes of this job, as the terminal does with Ctrl-Z, and
// returns when they continue. If no shell could continue them, the kernel ignores the
// signal, and stop returns soon. Go never gives SIGTSTP its default action back once a
// program was notified of it, so nothing here is.
func (*loop) stop() error {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	err := syscall.Kill(0, syscall.SIGTSTP)
	select {
	case <-continued:
	case <-time.After(200 * time.Millisecond):
	}
	return err
}
