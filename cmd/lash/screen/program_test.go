package screen

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/lash/markdown"
)

// program is what the tests run in a terminal: it streams a random answer in Markdown, as the chat does. Its words are numbered.
// It keeps a log of all lines that it commits. Enter commits the line that was typed. Ctrl-F shows it on the whole
// screen, Ctrl-A pauses and resumes the answer, Ctrl-P panics, Ctrl-Z stops, Ctrl-E runs a program, and Ctrl-Q ends it.
type program struct {
	random *rand.Rand
	rest   string // the answer that has not streamed
	words  int
	paused bool
	stream *markdown.Stream
	log    *os.File
	ready  []string // lines to commit
	typed  string
	width  int
	full   bool
}

type stepMsg struct{}

func newProgram(seed uint64, words int, log *os.File) *program {
	p := &program{random: rand.New(rand.NewPCG(seed, 1)), words: words, stream: markdown.NewStream(markdown.Style{Width: 100}), log: log}
	p.rest = p.answer()
	return p
}

// answer returns a random text in Markdown.
func (p *program) answer() string {
	var b strings.Builder
	next := 0
	some := func(n int) string {
		var words []string
		for range 1 + p.random.IntN(n) {
			if next == p.words {
				break
			}
			words = append(words, fmt.Sprintf("w%d%s", next, []string{"", "日本", "👍", "é"}[p.random.IntN(4)]))
			next++
		}
		return strings.Join(words, " ")
	}
	for next < p.words {
		switch p.random.IntN(6) {
		case 0, 1:
			b.WriteString(some(60) + "\n\n")
		case 2:
			b.WriteString("## " + some(5) + "\n\n")
		case 3:
			for range 1 + p.random.IntN(8) {
				b.WriteString("- " + some(12) + "\n")
			}
			b.WriteString("\n")
		case 4:
			b.WriteString("```\n")
			for range 1 + p.random.IntN(30) {
				b.WriteString(some(9) + "\n")
			}
			b.WriteString("```\n\n")
		case 5:
			b.WriteString("| a | b |\n|---|---|\n")
			for range 1 + p.random.IntN(5) {
				b.WriteString("| " + some(1) + " | " + some(1) + " |\n")
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func (p *program) Init() tea.Cmd { return p.step() }

func (p *program) step() tea.Cmd {
	return tea.Tick(2*time.Millisecond, func(time.Time) tea.Msg { return stepMsg{} })
}

func (p *program) Update(msg tea.Msg) tea.Cmd {
	switch m := msg.(type) {
	case tea.KeyPressMsg:
		switch m.String() {
		case "ctrl+a":
			p.paused = !p.paused
			return p.step()
		case "ctrl+f":
			p.full = !p.full
		case "ctrl+p":
			panic("a panic of the test")
		case "ctrl+e":
			return Exec(exec.Command("sh", "-c", `echo the other program; read line; echo "it read $line"`), func(error) tea.Msg { return nil })
		case "ctrl+z":
			return Stop
		case "ctrl+q":
			return tea.Quit
		case "enter":
			p.commit("› " + p.typed)
			p.typed = ""
		}
		p.typed += m.Text
	case tea.WindowSizeMsg:
		p.width = m.Width
	case stepMsg:
		return p.grow()
	}
	return nil
}

// grow streams a little more of the answer, more of a long one.
func (p *program) grow() tea.Cmd {
	if p.paused || p.rest == "" {
		return nil
	}
	n := min(1+p.random.IntN(max(40, p.words/100)), len(p.rest))
	for n < len(p.rest) && p.rest[n]&0xc0 == 0x80 {
		n++
	}
	p.commit(p.stream.Add(p.rest[:n])...)
	if p.rest = p.rest[n:]; p.rest == "" {
		p.commit(p.stream.End()...)
		return nil
	}
	return p.step()
}

func (p *program) commit(lines ...string) {
	for _, l := range lines {
		fmt.Fprintln(p.log, strings.TrimRight(ansi.Strip(l), " "))
	}
	p.ready = append(p.ready, lines...)
}

func (p *program) Draw(s *Screen) {
	s.Commit(p.ready...)
	p.ready = nil
	var live []string
	for _, l := range p.stream.Rest() {
		live = append(live, strings.Split(ansi.Hardwrap(l, s.Width(), true), "\n")...)
	}
	live = live[max(0, len(live)-s.Room()+2):]
	state := "working"
	switch {
	case p.rest == "":
		state = "finished"
	case p.paused:
		state = "paused"
	}
	if p.full {
		rows := []string{fmt.Sprintf("full %s %dx%d", state, s.Width(), s.Height())}
		for i := 1; i < s.Height(); i++ {
			rows = append(rows, fmt.Sprintf("row %d %s", i, strings.Repeat("=", s.Width())))
		}
		s.Full(rows, 5, 2)
		return
	}
	status := fmt.Sprintf("─ %s %dx%d ", state, s.Width(), s.Height())
	x := 2 + len(p.typed)
	if state == "working" && p.typed == "" {
		x = -1
	}
	s.Live(append(live, status+strings.Repeat("─", max(0, s.Width()-len([]rune(status)))), "› "+p.typed), x, len(live)+1)
}

func TestMain(m *testing.M) {
	if os.Getenv("SCREEN_PROGRAM") == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	var seed uint64
	var words int
	fmt.Sscan(os.Getenv("SCREEN_PROGRAM"), &seed, &words)
	log, err := os.Create(os.Getenv("SCREEN_LOG"))
	if err == nil {
		err = os.WriteFile(log.Name()+".pid", []byte(strconv.Itoa(os.Getpid())), 0o600)
	}
	if err == nil {
		err = Run(ctx, newProgram(seed, words, log), os.Stdin, os.Stdout)
	}
	stop()
	if errors.Is(err, tea.ErrProgramPanic) {
		os.Exit(3)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
