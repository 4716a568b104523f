package cli

import (
	"time"

	"lashd/internal/duration"
)

// timeSpan is the value of a flag, such as 90s, 10m, 2h or 1d.
type timeSpan struct{ time.Duration }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *timeSpan) UnmarshalText(text []byte) (err error) {
	s.Duration, err = duration.Parse(string(text))
	return err
}
