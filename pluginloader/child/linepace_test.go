package child

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

func TestLongLinesArePaced(t *testing.T) {
	for size, least := range map[int]time.Duration{1 << 20: 0, 5 << 20: 450 * time.Millisecond} {
		t.Run("reliability/P14 3.4-25 the excess of a long line is read slowly", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				line, err := NewLines(bytes.NewReader(append(bytes.Repeat([]byte("x"), size-1), '\n')), 8<<20).Next()
				took := time.Since(began)
				if err != nil || len(line) != size || took < least || took > least+100*time.Millisecond {
					t.Errorf("%d bytes in %v, want about %v: %v", len(line), took, least, err)
				}
			})
		})
	}
}
