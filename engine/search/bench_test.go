package search

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lashd/persistence"
	"lashd/persistence/textindex"
	"lashd/rpc/protocol"
)

// Size of the store of BenchmarkSearch.
const (
	benchSessions = 5_000
	benchMessages = 20 // of each session
)

// words makes texts whose words are as frequent as in a language, with 20,000 words.
type words struct {
	r    *rand.Rand
	zipf *rand.Zipf
}

func newWords() *words {
	r := rand.New(rand.NewPCG(1, 2))
	return &words{r, rand.NewZipf(r, 1.1, 4, 20_000)}
}

// word returns the n-th most frequent word.
func word(n uint64) string {
	const letters = "etaoinshrdlcumwfgypbvk"
	var text strings.Builder
	for n += 30; n > 0; n /= uint64(len(letters)) {
		text.WriteString(letters[n%uint64(len(letters)):][:1])
	}
	return text.String()
}

func (w *words) text(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = word(w.zipf.Uint64())
	}
	return strings.Join(all, " ")
}

// benchStore makes a store with 100,000 messages of 60 words in 5,000 sessions, a tenth of which are
// in /rare.
func benchStore(b *testing.B) *persistence.Store {
	s, w := open(b), newWords()
	for i := range benchSessions {
		id, cwd := protocol.SessionID(fmt.Sprint("ses_", i)), "/w"
		if i%10 == 0 {
			cwd = "/rare"
		}
		session(b, s, id, cwd, w.text(5), "")
		var nodes []protocol.Node
		for range benchMessages / 2 {
			nodes = append(nodes, user(w.text(30)), agent(w.text(90)))
		}
		if i == benchSessions/2 {
			nodes = append(nodes, user("the needle in the middle"))
		}
		commit(b, s, &persistence.Commit{Session: id, Nodes: nodes})
	}
	return s
}

// BenchmarkSearch searches 100,000 messages. The metric index-s is the time to make the index.
func BenchmarkSearch(b *testing.B) {
	s := benchStore(b)
	all, _ := searches(b, s)
	began := time.Now()
	for pending := int64(1); pending > 0; {
		r, err := all.Search(b.Context(), &protocol.SessionSearchParams{Query: "needle"})
		if err != nil {
			b.Fatal(err)
		}
		pending = r.Pending
	}
	indexed := time.Since(began).Seconds()
	info, err := os.Stat(filepath.Join(s.Dir(), textindex.FileName))
	if err != nil {
		b.Fatal(err)
	}
	for name, p := range map[string]protocol.SessionSearchParams{
		"once":            {Query: "needle"},
		"most-frequent":   {Query: word(0)},
		"letter":          {Query: "e"},
		"two-letters":     {Query: "ta"},
		"three-words":     {Query: word(3) + " " + word(50) + " " + word(200)},
		"phrase":          {Query: `"` + word(0) + " " + word(1) + `"`},
		"none":            {Query: word(0) + " zzz"},
		"directory":       {Query: word(0), Cwd: "/rare"},
		"distinct":        {Query: word(0), Distinct: true, Limit: 50},
		"empty-directory": {Query: word(0), Cwd: "/nowhere"},
		"archive":         {Query: word(0), Archived: true},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := all.Search(b.Context(), &p); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(indexed, "index-s")
			b.ReportMetric(float64(info.Size()>>20), "index-MB")
		})
	}
	b.Run("after-commit", func(b *testing.B) {
		for b.Loop() {
			say(b, s, "ses_7", user("a new message"))
			if _, err := all.Search(b.Context(), &protocol.SessionSearchParams{Query: "needle"}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkFirstSearch has a daemon open an index that is up to date.
func BenchmarkFirstSearch(b *testing.B) {
	s := benchStore(b)
	all, stop := searches(b, s)
	for pending := int64(1); pending > 0; {
		r, err := all.Search(b.Context(), &protocol.SessionSearchParams{Query: "needle"})
		if err != nil {
			b.Fatal(err)
		}
		pending = r.Pending
	}
	for b.Loop() {
		stop()
		all, stop = searches(b, s)
		if _, err := all.Search(b.Context(), &protocol.SessionSearchParams{Query: "needle"}); err != nil {
			b.Fatal(err)
		}
	}
}
