package child

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var quiet = slog.New(slog.DiscardHandler)

func TestLog(t *testing.T) {
	t.Run("issue/4-7 stderr is kept by lines without control characters", func(t *testing.T) {
		o := NewLog(quiet)
		for _, piece := range []string{"one\ntw", "o \x1b[31mred\x00\xff\n\n", strings.Repeat("x", 10_000) + "\n", "no end"} {
			if n, err := o.Write([]byte(piece)); n != len(piece) || err != nil {
				t.Fatal(n, err)
			}
		}
		o.Flush()
		want := []string{"one", `two \x1b[31mred\x00\xff`, strings.Repeat("x", 4096), "no end"}
		got := o.Newest()
		for i, l := range got {
			if i >= len(want) || l.Text != want[i] {
				t.Errorf("line %d is %.80q", i, l.Text)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d lines, want %d", len(got), len(want))
		}
	})
	t.Run("37 streams name their lines and do not mix them", func(t *testing.T) {
		o := NewLog(quiet)
		a, b := o.Stream("a"), o.Stream("b")
		_, _ = a.Write([]byte("one "))
		_, _ = b.Write([]byte("two\n"))
		_, _ = o.Write([]byte("three\n"))
		_, _ = a.Write([]byte("half\nrest"))
		a.Flush()
		b.Add(slog.LevelInfo, "four")
		var got []string
		for _, l := range o.Newest() {
			got = append(got, l.Text)
		}
		if want := []string{"b: two", "three", "a: one half", "a: rest", "b: four"}; !slices.Equal(got, want) {
			t.Errorf("lines %q, want %q", got, want)
		}
	})
	t.Run("issue/4-7 a repeated note of lashd is in the log once", func(t *testing.T) {
		o := NewLog(quiet)
		for _, text := range []string{"it died", "it died", "it is back", "it died"} {
			o.Note(slog.LevelError, text)
		}
		if got := o.Newest(); len(got) != 3 || got[0].Text != "it died" || got[1].Text != "it is back" || got[2].Text != "it died" {
			t.Errorf("lines %+v", got)
		}
	})
	t.Run("issue/4-7 a flood of lines is dropped and counted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			o := NewLog(quiet)
			for range 100_000 {
				_, _ = o.Write([]byte("again\n"))
			}
			if n := len(o.Newest()); n != 200 {
				t.Errorf("%d lines within a second, want 200", n)
			}
			time.Sleep(2 * time.Second)
			_, _ = o.Write([]byte("calm\n"))
			got := o.Newest()
			if len(got) != 202 || got[200].Text != "99800 lines were dropped because the plugin logged too fast" || got[201].Text != "calm" {
				t.Errorf("then %+v", got[len(got)-2:])
			}
			for range 20 {
				time.Sleep(2 * time.Second)
				for range 200 {
					o.Add(slog.LevelInfo, "more")
				}
			}
			if n := len(o.Newest()); n != 1000 {
				t.Errorf("%d lines are kept, want 1000", n)
			}
		})
	})
	t.Run("reliability/P14 each line of a flood is kept or counted, however it is split", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			o, flood := NewLog(quiet), strings.Repeat("a line\n", 10_000)
			for rest := flood; rest != ""; {
				n := min(len(rest), 997)
				_, _ = o.Write([]byte(rest[:n]))
				rest = rest[n:]
			}
			_, _ = o.Write([]byte("the last"))
			time.Sleep(2 * time.Second)
			_, _ = o.Write([]byte(" one\n"))
			got := o.Newest()
			if len(got) != 202 || got[200].Text != "9800 lines were dropped because the plugin logged too fast" || got[201].Text != "the last one" {
				t.Errorf("%d lines, at last %+v", len(got), got[len(got)-2:])
			}
		})
	})
	t.Run("reliability/P14 a program that floods stderr has to wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			o, began, piece := NewLog(quiet), time.Now(), []byte(strings.Repeat("x", 32<<10))
			write := func(mib int) {
				for range mib << 20 / len(piece) {
					_, _ = o.Write(piece)
				}
			}
			write(16)
			if took := time.Since(began); took != 0 {
				t.Errorf("16 MiB take %v", took)
			}
			write(16)
			if took := time.Since(began); (took - 2*time.Second).Abs() > 20*time.Millisecond {
				t.Errorf("16 MiB more take %v, want two seconds", took)
			}
		})
	})
}
