package child

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// Line is a line that a plugin has said: on stderr, by a log notification, or on stdout where it was no message. Lines that
// lashd has added say what became of the plugin.
type Line struct {
	At    time.Time
	Level slog.Level
	Text  string // without control characters
}

const (
	keptLines   = 1000
	longestLine = 4 << 10  // bytes
	heldLine    = 16 << 10 // until it is shown: with a secret that would be cut
	linesPerSec = 200      // what is more is dropped, and counted

	// Whoever writes more than this on stderr is kept waiting.
	bytesPerSec = 8 << 20
	bytesAtOnce = 16 << 20
)

// Log is the log of a plugin: the newest lines in memory, and what the plugin says in the daemon's log, too. It may be used by several
// goroutines at once.
type Log struct {
	log *slog.Logger

	mu      sync.Mutex
	secrets map[Secret]bool
	hide    *strings.Replacer // nil: nothing is secret
	partial []byte            // of a line on stderr that has no end yet
	lines   []Line
	rate    Rate
	pace    Pace
	dropped int
}

// NewLog makes a log that writes to the daemon's, too.
func NewLog(log *slog.Logger) *Log {
	return &Log{log: log, pace: Pace{PerSecond: bytesPerSec, Burst: bytesAtOnce}}
}

// maxSecrets is how many secrets a log hides: many more than plugins have.
const maxSecrets = 10_000

// Hide has other words shown in the place of secrets, from now on, besides those that are hidden already.
func (l *Log) Hide(secrets ...Secret) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.secrets)
	for _, s := range secrets {
		if l.secrets == nil {
			l.secrets = map[Secret]bool{}
		}
		if len(l.secrets) < maxSecrets {
			l.secrets[s] = true
		}
	}
	if len(l.secrets) > before {
		l.hide = Replacer(slices.SortedFunc(maps.Keys(l.secrets), func(a, b Secret) int { return cmp.Or(cmp.Compare(a.Text, b.Text), cmp.Compare(a.Shown, b.Shown)) }))
	}
}

// Redact gives a text without the secrets that the log hides.
func (l *Log) Redact(text string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hide == nil {
		return text
	}
	return l.hide.Replace(text)
}

// Write takes what a program writes on stderr. It never fails, and takes its time when that is too much.
func (l *Log) Write(data []byte) (int, error) {
	time.Sleep(l.take(data))
	return len(data), nil
}

func (l *Log) take(data []byte) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for rest := data; len(rest) > 0; {
		if l.rate.Spent(linesPerSec) {
			l.dropLocked(rest)
			break
		}
		line, after, ended := bytes.Cut(rest, []byte{'\n'})
		rest = after
		room := heldLine - len(l.partial)
		l.partial = append(l.partial, line[:min(len(line), room)]...)
		if ended {
			l.flushLocked()
		}
	}
	return l.pace.Take(len(data))
}

// dropLocked counts lines that there is no room for, without looking at each. What has no end yet may have room by then.
func (l *Log) dropLocked(data []byte) {
	if n := bytes.Count(data, []byte{'\n'}); n > 0 {
		l.dropped += n
		l.partial, data = l.partial[:0], data[bytes.LastIndexByte(data, '\n')+1:]
	}
	l.partial = append(l.partial, data[:min(len(data), heldLine-len(l.partial))]...)
}

func (l *Log) flushLocked() {
	if len(l.partial) > 0 {
		l.addLocked(slog.LevelInfo, string(l.partial))
	}
	l.partial = l.partial[:0]
}

// Add takes a line. What is more than 4 KiB of it is cut off.
func (l *Log) Add(level slog.Level, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addLocked(level, text)
}

// Note adds what lashd has to say of the plugin. Unlike what the plugin says it is in this log only, and not
// twice in a row: of one failure several may tell.
func (l *Log) Note(level slog.Level, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flushLocked() // what it has said last may be why
	text = l.shown(text)
	if n := len(l.lines); n == 0 || l.lines[n-1].Text != text {
		l.noteLocked(level, text)
	}
}

func (l *Log) addLocked(level slog.Level, text string) {
	if !l.rate.Allow(linesPerSec) {
		l.dropped++
		return
	}
	if l.dropped > 0 {
		l.keepLocked(slog.LevelWarn, strconv.Itoa(l.dropped)+" lines were dropped")
		l.dropped = 0
	}
	l.keepLocked(level, l.shown(text))
}

func (l *Log) keepLocked(level slog.Level, text string) {
	l.noteLocked(level, text)
	l.log.Log(context.Background(), level, "plugin says", "text", text)
}

func (l *Log) noteLocked(level slog.Level, text string) {
	if len(l.lines) == keptLines {
		l.lines = append(l.lines[:0], l.lines[1:]...)
	}
	l.lines = append(l.lines, Line{time.Now(), level, text})
}

// shown is a text as others may see it.
func (l *Log) shown(text string) string {
	if l.hide != nil {
		text = l.hide.Replace(text)
	}
	return escape(text[:min(len(text), longestLine)])
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

// Newest are the lines that are kept, at most 1,000, the oldest first.
func (l *Log) Newest() []Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Line(nil), l.lines...)
}

// Flush keeps what has no end.
func (l *Log) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flushLocked()
}
