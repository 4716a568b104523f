package persistence

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"lashd/rpc/protocol"
)

// turnLike is a commit like that at the end of a short turn.
func turnLike(id protocol.SessionID, n int) *Commit {
	op := fmt.Sprint("trn_", id, n)
	text := fmt.Appendf(nil, `{"item":%q,"text":%0800d}`, op, n)
	return &Commit{
		Session: id, AtMs: int64(n), Turned: true, Total: &protocol.Usage{Input: int64(n)},
		Nodes:     []protocol.Node{message(op + "a"), message(op + "b")},
		Events:    []Event{{protocol.EventItemCompleted, text}, {protocol.EventItemCompleted, text}, {protocol.EventTurnCompleted, text}},
		Turns:     []Turn{{ID: protocol.TurnID(op), State: protocol.TurnCompleted}},
		Usage:     []Usage{{Operation: op, Row: protocol.UsageRow{Source: "turn", Model: "m"}}},
		Component: []Component{{"state", fmt.Appendf(nil, "%0400d", n)}},
		Receipt:   &Receipt{Key: op, Hash: []byte("h"), Result: []byte("{}")},
	}
}

// floor measures the minimum cost of a durable commit here: 8 KiB written and synced.
func floor(b *testing.B) time.Duration {
	f, err := os.Create(filepath.Join(b.TempDir(), "floor"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	data := make([]byte, 8<<10)
	const times = 300
	begin := time.Now()
	for i := range times {
		if _, err := f.WriteAt(data, int64(i*len(data))); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(begin) / times
}

func BenchmarkCommit(b *testing.B) {
	least := floor(b)
	s := open(b, b.TempDir())
	commit(b, s, rootCommit("ses_a"))
	n := 0
	for b.Loop() {
		n++
		commit(b, s, turnLike("ses_a", n))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(least.Nanoseconds()), "x-floor")
	b.ReportMetric(float64(least.Microseconds()), "floor-us")
}

// BenchmarkGroup64 has 64 sessions commit at once; an operation is one commit.
func BenchmarkGroup64(b *testing.B) {
	s := open(b, b.TempDir())
	const clients = 64
	for c := range clients {
		commit(b, s, rootCommit(protocol.SessionID(fmt.Sprint("ses_", c))))
	}
	b.ResetTimer()
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for i := c; i < b.N; i += clients {
				if _, err := s.Commit(b.Context(), turnLike(protocol.SessionID(fmt.Sprint("ses_", c)), i)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkOpen(b *testing.B) {
	s, stop := start(b, quiet(b.TempDir()))
	commit(b, s, rootCommit("ses_a"))
	for i := range 100 {
		commit(b, s, turnLike("ses_a", i))
	}
	stop()
	for b.Loop() {
		s, err := Open(b.Context(), quiet(s.Dir()))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Session(b.Context(), "ses_a"); err != nil { // the first answer
			b.Fatal(err)
		}
		b.StopTimer()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

func BenchmarkPath200(b *testing.B) {
	s := open(b, b.TempDir())
	commit(b, s, rootCommit("ses_a"))
	for i := range 200 {
		commit(b, s, &Commit{Session: "ses_a", Nodes: []protocol.Node{message(fmt.Sprint("nod_", i))}})
	}
	row := session(b, s, "ses_a")
	for b.Loop() {
		nodes, _, err := s.Path(b.Context(), Cursor{Branch: row.Branch, Generation: row.Head.Generation}, 200)
		if err != nil || len(nodes) != 200 {
			b.Fatal(len(nodes), err)
		}
	}
}

func BenchmarkSession(b *testing.B) {
	s := open(b, b.TempDir())
	commit(b, s, rootCommit("ses_a"))
	b.Run("prepared", func(b *testing.B) {
		for b.Loop() {
			session(b, s, "ses_a")
		}
	})
	b.Run("unprepared", func(b *testing.B) {
		for b.Loop() {
			rows, err := s.pool.db.QueryContext(b.Context(), expanded(selectSession), "ses_a")
			if err != nil {
				b.Fatal(err)
			}
			if _, err := collect(rows, scanSession); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkSync compares what the log does: it syncs a commit of 14 pages where it writes over old ones, and where the file
// grows.
func BenchmarkSync(b *testing.B) {
	const commits = 200
	data := make([]byte, 14*4120)
	write := func(f *os.File) time.Duration {
		begin := time.Now()
		for i := range commits {
			_, err := f.WriteAt(data, int64(i*len(data)))
			if err := errors.Join(err, f.Sync()); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(begin)
	}
	var grown, over time.Duration
	for b.Loop() {
		f, err := os.Create(filepath.Join(b.TempDir(), "log"))
		if err != nil {
			b.Fatal(err)
		}
		grown += write(f)
		over += write(f)
		f.Close()
	}
	b.ReportMetric(float64(over.Microseconds())/float64(b.N*commits), "over-us")
	b.ReportMetric(float64(grown)/float64(over), "x-grow")
}
