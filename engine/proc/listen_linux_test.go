package proc

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"lashd/test/skip"
)

// answering returns a Serve function that answers each HTTP request with a text.
func answering(text string) func(context.Context, net.Listener) {
	return func(_ context.Context, l net.Listener) {
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })) // ends with the listener
	}
}

func TestServe(t *testing.T) {
	err := Views()
	skip.Unless(t, "NAMESPACES", err == nil, lacking(err))
	p := newPlace(t, t.TempDir())
	const client = `
import os,socket,sys,urllib.request
try: print(urllib.request.build_opener(urllib.request.ProxyHandler({})).open("http://` + ListenAddress + `/", timeout=5).read().decode())
except OSError as e: print("refused")
print(sorted(os.listdir("/proc/self/fd")))
`
	if err := os.WriteFile(filepath.Join(p.work, "client.py"), []byte(client), 0o600); err != nil {
		t.Fatal(err)
	}
	command := func(serve func(context.Context, net.Listener)) Command {
		c := confinedShell("exec python3 client.py", Confinement{Sandbox: p.sandbox()})
		c.Dir, c.Env, c.Serve = p.work, append(c.Env, "HOME="+p.home, "PATH="+os.Getenv("PATH")), serve
		return c
	}
	t.Run("part11/network a child reaches Serve, and has no descriptor of the listening socket", func(t *testing.T) {
		if out, exit := says(t, command(answering("hello"))); out != "hello\n['0', '1', '2', '3']\n" || exit != (Exit{}) {
			t.Errorf("%q, %+v", out, exit)
		}
	})
	t.Run("part11/network nothing listens without Serve", func(t *testing.T) {
		if out, _ := says(t, command(nil)); !strings.HasPrefix(out, "refused\n") {
			t.Errorf("%q", out)
		}
	})
	t.Run("part11/network each child has its own listener", func(t *testing.T) {
		for _, text := range []string{"one", "two"} {
			if out, _ := says(t, command(answering(text))); !strings.HasPrefix(out, text+"\n") {
				t.Errorf("%q, want %q", out, text)
			}
		}
	})
	t.Run("part11/network the listener is closed when the child has ended", func(t *testing.T) {
		ended := make(chan error, 1)
		c := command(func(_ context.Context, l net.Listener) {
			_, err := l.Accept()
			ended <- err
		})
		c.Argv = []string{"true"}
		says(t, c)
		select {
		case err := <-ended:
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("Accept ended with %v", err)
			}
		default:
			t.Error("Wait returned before Serve")
		}
	})
	t.Run("part11/network an open program and a directory are passed beside the listener", func(t *testing.T) {
		sh, err := os.Open("/bin/sh")
		if err != nil {
			t.Fatal(err)
		}
		defer sh.Close()
		c := command(answering("hello"))
		c.Program = sh
		if out, _ := says(t, c); !strings.HasPrefix(out, "hello\n") {
			t.Errorf("%q", out)
		}
	})
	t.Run("part11/network a child without its own network is refused", func(t *testing.T) {
		for _, confine := range []*Confinement{nil, {}, {Sandbox: &Sandbox{}}, {Sandbox: &Sandbox{Network: true, View: &View{Temp: p.temp}}}} {
			c := command(answering("hello"))
			c.Confine = confine
			if _, err := Start(t.Context(), c); !errors.Is(err, ErrNoSandbox) {
				t.Errorf("%+v: %v", confine, err)
			}
		}
	})
	t.Run("part11/network no descriptors stay open", func(t *testing.T) {
		says(t, command(answering("x")))                 // what is opened once
		defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection closes files that were forgotten
		before := openFiles(t)
		for range 5 {
			says(t, command(answering("x")))
		}
		missing := command(answering("x"))
		missing.Argv = []string{"/nonexistent"}
		if _, err := Start(t.Context(), missing); err == nil {
			t.Error("a missing program started")
		}
		for end := time.Now().Add(10 * time.Second); openFiles(t) > before; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d files are open, %d before", openFiles(t), before)
			}
		}
	})
}

// openFiles returns the number of open descriptors of this process.
func openFiles(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// BenchmarkServe starts a program with a View, without and with Serve, in turn. It reports both medians and what Serve adds.
func BenchmarkServe(b *testing.B) {
	err := Views()
	skip.Unless(b, "NAMESPACES", err == nil, lacking(err))
	temp := b.TempDir()
	view := &Confinement{Sandbox: &Sandbox{Write: []string{temp}, View: &View{Temp: temp}}}
	took := [2][]time.Duration{}
	for b.Loop() {
		for i, serve := range []func(context.Context, net.Listener){nil, answering("x")} {
			begun := time.Now()
			p, err := Start(b.Context(), Command{Argv: []string{"/bin/true"}, Dir: temp, Confine: view, Serve: serve})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := p.Wait(); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(begun))
		}
	}
	var median [2]float64
	for i, all := range took {
		slices.Sort(all)
		median[i] = float64(all[len(all)/2].Microseconds()) / 1000
	}
	b.ReportMetric(median[0], "view-ms")
	b.ReportMetric(median[1], "serve-ms")
	b.ReportMetric(median[1]-median[0], "added-ms")
}
