package chat

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"lashd/cmd/lash/markdown"
	"lashd/cmd/lash/screen"
	"lashd/rpc/protocol"
)

// Caller calls a method of the daemon. It may be called by several goroutines at once.
type Caller func(ctx context.Context, method string, params, result any) error

// PickSession shows the sessions of a directory on a terminal, and returns the one that the user takes. It returns "" if the
// user takes none, or ctx is done.
func PickSession(ctx context.Context, call Caller, cwd string, in, out *os.File, o Options) (protocol.SessionID, error) {
	if o.ScreenReader {
		return pickByNumber(ctx, call, cwd, in, out)
	}
	m := &pick{style: markdown.Detect(out, os.Environ()), profile: colorprofile.Detect(out, os.Environ())}
	ask := func(method string, params, result any) error { return call(ctx, method, params, result) }
	m.picker, m.first = newSessionPicker(ask, cwd, "", func(id protocol.SessionID) tea.Cmd {
		m.taken = id
		return nil
	})
	err := screen.Run(ctx, m, in, out)
	return m.taken, err
}

// pickByNumber prints the newest sessions as a numbered list, and reads a number.
func pickByNumber(ctx context.Context, call Caller, cwd string, in io.Reader, out io.Writer) (protocol.SessionID, error) {
	list, err := newestSessions(func(method string, params, result any) error { return call(ctx, method, params, result) }, cwd)
	if err != nil || len(list) == 0 {
		return "", cmp.Or(err, fmt.Errorf("there is no session of %s yet; lash chat begins one", cwd))
	}
	for i := range list {
		fmt.Fprintf(out, "%d. %s\n", i+1, spokenSession(&list[i]))
	}
	fmt.Fprint(out, "Type the number of a session and press Enter, or only Enter for none: ")
	line := lineOf(ctx, in)
	if line == "" {
		return "", nil
	}
	n, err := strconv.Atoi(strings.TrimSuffix(line, "."))
	if err != nil || n < 1 || n > len(list) {
		return "", fmt.Errorf("%q is no number of the list", line)
	}
	return list[n-1].ID, nil
}

// lineOf reads a line without the spaces around it. It returns "" at the end of the input, or if ctx is done; the read then ends with the
// process.
func lineOf(ctx context.Context, in io.Reader) string {
	read := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(in).ReadString('\n') // what was read before an error counts
		read <- strings.TrimSpace(line)
	}()
	select {
	case line := <-read:
		return line
	case <-ctx.Done():
		return ""
	}
}

// pick is the screen.Model of a session picker without a chat behind it.
type pick struct {
	picker  *sessionPicker
	first   tea.Cmd
	style   markdown.Style
	profile colorprofile.Profile
	taken   protocol.SessionID
	ended   bool
}

// Init implements screen.Model.
func (m *pick) Init() tea.Cmd { return m.first }

// Update implements screen.Model.
func (m *pick) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.BackgroundColorMsg:
		m.style.Theme = markdown.ThemeFor(m.profile, new(msg.IsDark()))
	case tea.KeyPressMsg:
		if msg.String() == "ctrl+z" {
			return screen.Stop
		}
	}
	cmd, open := m.picker.update(msg)
	if !open {
		m.ended = true
		return tea.Quit
	}
	return cmd
}

// Draw implements screen.Model. At its end nothing is left on the terminal.
func (m *pick) Draw(s *screen.Screen) {
	if m.ended {
		s.Live(nil, 0, 0)
		return
	}
	m.style.Width = s.Width()
	s.Full(m.picker.view(m.style, s.Height()))
}
