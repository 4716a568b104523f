//go:build unix

package emulator

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/creack/pty"

	"lashd/test/skip"
)

// xterm is xterm.js in a process of node, connected to the program by a
// pseudoterminal.
type xterm struct {
	t       testing.TB
	tty     *os.File
	answers chan []byte // to requests, except for those to write

	mu   sync.Mutex // held while a message is sent
	node io.Writer
}

// XTerm runs cmd in xterm.js, with the name of VS Code. TERM is that of cmd.
func XTerm(t testing.TB, cmd *exec.Cmd, width, height int) Terminal {
	t.Helper()
	need(t, "NODE", "node")
	_, self, _, _ := runtime.Caller(0)
	dir := filepath.Dir(self)
	_, err := os.Stat(filepath.Join(dir, "node_modules", "@xterm", "headless"))
	skip.Unless(t, "NODE", err == nil, "xterm.js is missing: npm install --no-save in test/emulator")
	node := exec.Command("node", filepath.Join(dir, "xterm.mjs"), fmt.Sprint(width), fmt.Sprint(height))
	node.Stderr = os.Stderr
	in, err := node.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(environment(cmd), "TERM_PROGRAM=vscode")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: uint16(height), Cols: uint16(width)})
	if err != nil {
		t.Fatal(err)
	}
	x := &xterm{t: t, tty: tty, answers: make(chan []byte, 1), node: in}
	var wg sync.WaitGroup
	wg.Go(x.show)
	wg.Go(func() { x.listen(bufio.NewReader(out)) })
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = tty.Close()
		_ = in.Close()
		wg.Wait()
		_ = node.Wait()
	})
	return x
}

// show sends the output of the program to xterm.js until the terminal is closed.
func (x *xterm) show() {
	buf := make([]byte, 1<<16)
	for {
		n, err := x.tty.Read(buf)
		if n > 0 {
			x.send('w', buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// listen passes on the messages of node: answers of the terminal to the program, and
// answers to the test.
func (x *xterm) listen(out *bufio.Reader) {
	defer close(x.answers)
	for {
		var kind byte
		var size int
		if _, err := fmt.Fscanf(out, "%c%d\n", &kind, &size); err != nil {
			return
		}
		body := make([]byte, size)
		if _, err := io.ReadFull(out, body); err != nil {
			return
		}
		if kind == 'i' {
			_, _ = x.tty.Write(body) // the program may have ended
			continue
		}
		x.answers <- body
	}
}

func (x *xterm) send(kind byte, body []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, _ = fmt.Fprintf(x.node, "%c%d\n%s", kind, len(body), body) // an error shows in the missing answer
}

// ask sends a request and returns its answer.
func (x *xterm) ask(kind byte, body string) []byte {
	x.t.Helper()
	x.send(kind, []byte(body))
	answer, ok := <-x.answers
	if !ok {
		x.t.Fatal("node has ended")
	}
	return answer
}

// Type implements Terminal.
func (x *xterm) Type(keys string) {
	x.t.Helper()
	if _, err := io.WriteString(x.tty, keys); err != nil {
		x.t.Fatal(err)
	}
}

// Resize implements Terminal. Like a terminal emulator, it changes the screen first and then
// tells the program.
func (x *xterm) Resize(width, height int) {
	x.t.Helper()
	x.ask('r', fmt.Sprint(width, " ", height))
	if err := pty.Setsize(x.tty, &pty.Winsize{Rows: uint16(height), Cols: uint16(width)}); err != nil {
		x.t.Fatal(err)
	}
}

// Look implements Terminal.
func (x *xterm) Look() (p Picture) {
	x.t.Helper()
	if err := json.Unmarshal(x.ask('d', ""), &p); err != nil {
		x.t.Fatal(err)
	}
	return p
}
