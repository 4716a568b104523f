package process

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// LogLine is a line that a plugin has said: on stderr, by a log notification, or on stdout where it was no message.
type LogLine struct {
	At    time.Time
	Level slog.Level
	Text  string // without control characters
}

const (
	keptLines   = 1000
	longestLine = 4 << 10 // bytes
	linesPerSec = 200     // what is more is dropped, and counted
)

// output is the log of a plugin: the newest lines in memory, and all of them in the daemon's log.
type output struct {
	log *slog.Logger

	mu      sync.Mutex
	partial []byte // of a line on stderr that has no end yet
	lines   []LogLine
	rate    rate
	dropped int
}

func newOutput(log *slog.Logger) *output { return &output{log: log} }

// Write takes what the plugin writes on stderr.
func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for rest := data; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte{'\n'})
		rest = after
		room := longestLine - len(o.partial)
		o.partial = append(o.partial, line[:min(len(line), room)]...)
		if ended {
			o.flushLocked()
		}
	}
	return len(data), nil
}

func (o *output) flushLocked() {
	if len(o.partial) > 0 {
		o.addLocked(slog.LevelInfo, string(o.partial))
	}
	o.partial = o.partial[:0]
}

// add takes a line.
func (o *output) add(level slog.Level, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.addLocked(level, text[:min(len(text), longestLine)])
}

func (o *output) addLocked(level slog.Level, text string) {
	if !o.rate.allow(linesPerSec) {
		o.dropped++
		return
	}
	if o.dropped > 0 {
		o.keepLocked(slog.LevelWarn, strconv.Itoa(o.dropped)+" lines were dropped")
		o.dropped = 0
	}
	o.keepLocked(level, escape(text))
}

func (o *output) keepLocked(level slog.Level, text string) {
	if len(o.lines) == keptLines {
		o.lines = append(o.lines[:0], o.lines[1:]...)
	}
	o.lines = append(o.lines, LogLine{time.Now(), level, text})
	o.log.Log(context.Background(), level, "plugin says", "text", text)
}

// escape makes control characters and broken text visible.
func escape(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// newest are the lines that are kept.
func (o *output) newest() []LogLine {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]LogLine(nil), o.lines...)
}

// close keeps what has no end.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flushLocked()
}
