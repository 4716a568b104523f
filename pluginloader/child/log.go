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

// Line is one entry of a plugin's log. Plugins write entries with a log notification, on stderr, or
// with output on stdout that is no message. lashd adds entries of its own about the plugin's
// process.
type Line struct {
	At    time.Time
	Level slog.Level
	Text  string // without control characters, with secrets replaced
}

const (
	// Limits of one plugin's log.
	keptLines   = 1000     // newest lines that stay in memory
	longestLine = 4 << 10  // bytes; the rest of a line is cut off
	heldLine    = 16 << 10 // bytes of a line to collect before secrets are replaced, so that cutting does not split a secret
	linesPerSec = 200      // more lines are dropped and counted

	// A program that writes faster than this to stderr has to wait.
	bytesPerSec = 8 << 20
	bytesAtOnce = 16 << 20
)

// Log is the log of one plugin. It keeps the newest lines in memory for clients and copies the
// plugin's output to the daemon's log. It replaces known secrets and drops lines of a plugin that
// writes too fast. It implements io.Writer for stderr and is safe for concurrent use.
type Log struct {
	log *slog.Logger

	mu      sync.Mutex
	secrets map[Secret]bool   // every secret passed to Hide
	hide    *strings.Replacer // nil: no secrets
	own     Stream            // of the plugin's own program
	lines   []Line            // the newest lines, oldest first
	rate    Rate              // counts lines
	pace    Pace              // limits bytes on stderr
	dropped int               // lines dropped since the last line that was kept
}

// NewLog returns an empty log that also writes to the daemon's log.
func NewLog(log *slog.Logger) *Log {
	l := &Log{log: log, pace: Pace{PerSecond: bytesPerSec, Burst: bytesAtOnce}}
	l.own.log = l
	return l
}

// Stream is the output of one program of a plugin that has several. Each of its lines in the log begins with its name. It implements
// io.Writer for stderr and is safe for concurrent use; the log's mu guards it.
type Stream struct {
	log     *Log
	name    string // empty: that of the plugin's own program
	partial []byte // start of a stderr line that is not complete yet
}

// Stream returns a new stream for a program with a name. The caller calls Flush when the program has ended.
func (l *Log) Stream(name string) *Stream { return &Stream{log: l, name: name} }

// maxSecrets bounds the secrets of one log. Real plugins have far fewer.
const maxSecrets = 10_000

// Hide adds secrets to replace in all later lines. Lines that are already in the log stay as they
// are.
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

// Redact returns text with the secrets replaced.
func (l *Log) Redact(text string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hide == nil {
		return text
	}
	return l.hide.Replace(text)
}

// Write takes output of a program on stderr. It never fails. It sleeps if the program writes too
// fast, which makes the program wait on its pipe.
func (l *Log) Write(data []byte) (int, error) { return l.own.Write(data) }

// Write takes output as that of Log.
func (s *Stream) Write(data []byte) (int, error) {
	time.Sleep(s.take(data))
	return len(data), nil
}

// take splits data into lines and returns how long the writer has to wait.
func (s *Stream) take(data []byte) (wait time.Duration) {
	l := s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	for rest := data; len(rest) > 0; {
		if l.rate.Spent(linesPerSec) {
			s.dropLocked(rest)
			break
		}
		line, after, ended := bytes.Cut(rest, []byte{'\n'})
		rest = after
		room := heldLine - len(s.partial)
		s.partial = append(s.partial, line[:min(len(line), room)]...)
		if ended {
			s.flushLocked()
		}
	}
	return l.pace.Take(len(data))
}

// dropLocked counts the complete lines of data as dropped without looking at each. It keeps the
// incomplete last line, which may fit into the next second.
func (s *Stream) dropLocked(data []byte) {
	if n := bytes.Count(data, []byte{'\n'}); n > 0 {
		s.log.dropped += n
		s.partial, data = s.partial[:0], data[bytes.LastIndexByte(data, '\n')+1:]
	}
	s.partial = append(s.partial, data[:min(len(data), heldLine-len(s.partial))]...)
}

// flushLocked adds the incomplete last line, if any.
func (s *Stream) flushLocked() {
	if len(s.partial) > 0 {
		s.log.addLocked(slog.LevelInfo, s.named(string(s.partial)))
	}
	s.partial = s.partial[:0]
}

// named puts the name of the stream before a line.
func (s *Stream) named(text string) string {
	if s.name == "" {
		return text
	}
	return s.name + ": " + text
}

// Add adds a line of the plugin. Text beyond 4 KiB is cut off, and lines beyond the rate are
// dropped.
func (l *Log) Add(level slog.Level, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addLocked(level, text)
}

// Add adds a line as that of Log.
func (s *Stream) Add(level slog.Level, text string) { s.log.Add(level, s.named(text)) }

// Note adds a line that lashd writes about the plugin. It has no rate limit and does not go to the
// daemon's log. A text equal to the last line is skipped, because several callers may report the
// same failure.
func (l *Log) Note(level slog.Level, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.own.flushLocked() // the plugin's last words may explain the note, so they come first
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
		l.keepLocked(slog.LevelWarn, strconv.Itoa(l.dropped)+" lines were dropped because the plugin logged too fast")
		l.dropped = 0
	}
	l.keepLocked(level, l.shown(text))
}

// keepLocked adds a line to memory and to the daemon's log.
func (l *Log) keepLocked(level slog.Level, text string) {
	l.noteLocked(level, text)
	l.log.Log(context.Background(), level, "plugin output", "text", text)
}

// noteLocked adds a line to memory and removes the oldest one if there are too many.
func (l *Log) noteLocked(level slog.Level, text string) {
	if len(l.lines) == keptLines {
		l.lines = append(l.lines[:0], l.lines[1:]...)
	}
	l.lines = append(l.lines, Line{time.Now(), level, text})
}

// shown replaces the secrets of a text, cuts it and escapes control characters.
func (l *Log) shown(text string) string {
	if l.hide != nil {
		text = l.hide.Replace(text)
	}
	return escape(text[:min(len(text), longestLine)])
}

// escape makes control characters and invalid UTF-8 visible.
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

// Newest returns a copy of the lines in memory, at most 1,000, oldest first.
func (l *Log) Newest() []Line {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Line(nil), l.lines...)
}

// Flush adds the incomplete last line of stderr, for example after the program has ended.
func (l *Log) Flush() { l.own.Flush() }

// Flush adds the incomplete last line of the stream.
func (s *Stream) Flush() {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.flushLocked()
}
