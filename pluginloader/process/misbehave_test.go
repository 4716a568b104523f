//go:build unix

package process_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// begin is the misbehaviour of a plugin before the first message.
func (g *guest) begin() {
	switch g.role {
	case "exit0":
		os.Exit(0)
	case "exit3":
		os.Exit(3)
	case "mute":
		forever()
	case "banner":
		os.Stdout.WriteString("Welcome to the plugin!\n\n[ok] ready\n")
	case "deafToTerm", "deafToTermHang":
		signal.Ignore(syscall.SIGTERM)
	case "mumbles":
		os.Stdout.WriteString(strings.Repeat("what a fine day\n", 10000))
	}
}

// forever does nothing. Where nothing else goes on, Go would take "select {}" for a mistake, and end the process.
func forever() {
	for {
		time.Sleep(time.Hour)
	}
}

// orphaned is its behaviour after the end of stdin.
func (g *guest) orphaned() {
	if g.role == "deafToTerm" || g.role == "stays" {
		forever()
	}
}

// misbehaves does something else than to answer.
func (g *guest) misbehaves(f frame) bool {
	phase, what, ok := strings.Cut(g.role, ":")
	if !ok || phase != f.Method {
		return false
	}
	switch what {
	case "exit0":
		os.Exit(0)
	case "exit":
		os.Exit(4)
	case "exitsOnce":
		if f, err := os.OpenFile(os.Getenv("PLUGIN_DATA")+"/once", os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			f.Close()
			os.Exit(4)
		}
		return false
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "hang":
	case "deafToTerm":
		signal.Ignore(syscall.SIGTERM)
		forever()
	case "chatter":
		g.write([]byte("what a fine day\n\n[ok] done\n"))
		return false
	case "zero":
		g.write([]byte("{\"jsonrpc\":\"2.0\",\x00\"id\":" + string(f.ID) + ",\"result\":{}}\n"))
	case "bom":
		g.write([]byte("\ufeff{\"jsonrpc\":\"2.0\",\"id\":" + string(f.ID) + ",\"result\":{}}\n"))
	case "callsBack":
		go func() {
			for range 20 {
				_, _ = g.ask("host/createSession", map[string]any{"grant": "guessed"})
			}
		}()
		return false
	case "asksOn":
		for {
			g.write([]byte(strings.Repeat(`{"jsonrpc":"2.0","id":"g0","method":"host/toolState","params":{"grant":"guessed"}}`+"\n", 100)))
		}
	case "leaves":
		cmd := exec.Command("setsid", "sh", "-c", "sleep 300 & sleep 300")
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		return false
	case "readsNoMore":
		g.stopped.Store(true)
		return false
	case "stopsReading":
		g.stopped.Store(true) // who reads sees it with the next line
	case "stop":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case "deaf":
		forever()
	case "endless":
		for {
			g.write([]byte(strings.Repeat("x", 64<<10)))
		}
	case "endlessJSON":
		g.write([]byte(`{"jsonrpc":"2.0","id":` + string(f.ID) + `,"result":"`))
		for {
			g.write([]byte(strings.Repeat("x", 64<<10)))
		}
	case "partial":
		g.write([]byte(`{"jsonrpc":"2.0","id":`))
	case "invalid":
		g.write([]byte("{\"jsonrpc\":\n"))
	case "utf8":
		g.write([]byte("{\"jsonrpc\":\"2.0\",\"id\":" + string(f.ID) + ",\"result\":\"\xff\xfe\"}\n"))
	case "deep":
		g.write([]byte(`{"jsonrpc":"2.0","id":` + string(f.ID) + `,"result":` + strings.Repeat("[", 100000) + strings.Repeat("]", 100000) + "}\n"))
	case "twoFields":
		g.write([]byte(`{"jsonrpc":"2.0","id":` + string(f.ID) + `,"result":{},"result":{}}` + "\n"))
	case "twoFieldsInside":
		g.write([]byte(`{"jsonrpc":"2.0","id":` + string(f.ID) + `,"result":{"directives":[],"directives":[]}}` + "\n"))
	case "otherLetters":
		g.write([]byte(`{"jsonrpc":"2.0","id":` + string(f.ID) + `,"Result":{}}` + "\n"))
	case "otherLettersInside":
		g.write([]byte(`{"jsonrpc":"2.0","id":` + string(f.ID) + `,"result":{"Directives":[]}}` + "\n"))
	case "hugeID":
		g.write([]byte(`{"jsonrpc":"2.0","id":` + strings.Repeat("9", 400) + `,"result":{}}` + "\n"))
	case "hugeCall":
		g.write([]byte(`{"jsonrpc":"2.0","id":"` + strings.Repeat("9", 400) + `","method":"host/toolState","params":{}}` + "\n"))
	case "foreign":
		for range 200 {
			g.write([]byte(`{"jsonrpc":"2.0","id":123456,"result":{}}` + "\n"))
		}
	case "twice":
		for range 200 {
			result, _ := g.do(f)
			g.send(frame{JSONRPC: "2.0", ID: f.ID, Result: mustJSON(result)})
		}
	case "strange":
		g.send(frame{JSONRPC: "2.0", ID: f.ID, Result: json.RawMessage(`{"directives":[{"kind":"rm_rf"}],"status":"ok"}`)})
	case "closeStdout":
		os.Stdout.Close()
	case "closeStdin":
		os.Stdin.Close()
		time.Sleep(time.Hour)
	case "notices":
		for {
			g.tell("log", map[string]any{"level": "INFO", "message": "hello"})
		}
	case "unknownNotice":
		g.tell("please/panic", map[string]any{})
	case "stderr":
		flood := []byte(strings.Repeat("\x1b[31mred\x00\n", 4096))
		for range 500 { // 18 MB
			os.Stderr.Write(flood)
		}
		return false
	case "late":
		go func() {
			<-g.late
			time.Sleep(time.Second) // a tool may have a last word
			result, _ := g.do(f)
			g.send(frame{JSONRPC: "2.0", ID: f.ID, Result: mustJSON(result)})
		}()
	case "fork":
		cmd := exec.Command("sh", "-c", "sleep 300 & sleep 300")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		_ = cmd.Start()
		os.Exit(5)
	case "setsid":
		cmd := exec.Command("setsid", "sh", "-c", "sleep 300 & sleep 300")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		_ = cmd.Start()
		time.Sleep(100 * time.Millisecond)
		os.Exit(5)
	case "slowly":
		for _, b := range []byte(`{"jsonrpc":"2.0","id":` + string(f.ID) + `,"result":{}}`) {
			g.write([]byte{b})
			time.Sleep(300 * time.Millisecond)
		}
	}
	return true
}
