package console

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgress(t *testing.T) {
	t.Run("issue/21-4 work of more than a second says what it does, how far it is and how to stop it, and removes the line at its end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			p := begin(&out, "copying the data", "Ctrl-C cancels the copy")
			time.Sleep(progressDelay - time.Millisecond)
			synctest.Wait()
			if out.Len() > 0 {
				t.Errorf("within the first second it prints %q", out.String())
			}
			p.Far("%d of %d sessions", 3, 12)
			time.Sleep(time.Second)
			p.End()
			p.End()
			if want := "\r[1s] copying the data: 3 of 12 sessions (Ctrl-C cancels the copy)\x1b[K\r\x1b[K"; out.String() != want {
				t.Errorf("it prints %q, want %q", out.String(), want)
			}
		})
	})
	t.Run("issue/21-4 short work prints nothing, and neither does any work without a terminal", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			begin(&out, "x", "y").End()
			p := &Progress{}
			p.Far("1")
			p.End()
			if out.Len() > 0 {
				t.Errorf("it prints %q", out.String())
			}
		})
	})
}

func TestProgressLine(t *testing.T) {
	for _, test := range []struct {
		width int
		want  string
	}{
		{80, "[5s] copying the data: 3 of 12 MiB (Ctrl-C cancels it; nothing is left)"},
		{60, "[5s] copying the data: 3 of 12 MiB (Ctrl-C cancels it)"},
		{40, "[5s] 3 of 12 MiB (Ctrl-C cancels it)"},
		{20, "[5s] 3 of 12 MiB"},
		{14, "[5s] 3 of 12 …"},
	} {
		t.Run("issue/21-4 a line that is too long keeps how to stop", func(t *testing.T) {
			got := progressLine(5*time.Second, "copying the data", "3 of 12 MiB", "Ctrl-C cancels it; nothing is left", test.width)
			if got != test.want {
				t.Errorf("%d columns: got %q, want %q", test.width, got, test.want)
			}
		})
	}
}
