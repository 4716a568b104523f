package config

import (
	"bytes"
	"os"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/pelletier/go-toml/v2/unstable"

	"lashd/rpc/socket"
)

// WithModel returns a config.toml with another value of the key model; all other bytes stay. A file without the key gets it as its first
// line.
func WithModel(data []byte, name string) []byte {
	value := []byte(strconv.Quote(name))
	if from, to := valueOf(data, "model"); to > 0 {
		return slices.Concat(data[:from], value, data[to:])
	}
	return slices.Concat([]byte("model = "), value, []byte("\n"), data)
}

// valueOf returns where the value of a top-level key begins and ends; to is 0 if the file does not have the key.
func valueOf(data []byte, name string) (from, to int) {
	var p unstable.Parser
	p.Reset(data)
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind != unstable.KeyValue {
			return 0, 0 // the first table
		}
		if _, key := keyOf(&p, e); slices.Equal(key, []string{name}) {
			value := e.Value().Raw
			return int(value.Offset), int(value.Offset + value.Length)
		}
	}
	return 0, 0
}

// liveDefault is the default model that config.toml names now. It is safe for concurrent use.
type liveDefault struct {
	home string // data directory
	read Config // when the daemon started

	mu   sync.Mutex
	data []byte    // of the file when it was last read
	at   time.Time // time of the file then
	name string
}

// NewLiveDefault returns the default model of a configuration that was just read.
func NewLiveDefault(home string, c Config) *liveDefault {
	d := &liveDefault{home: home, read: c, name: c.DefaultName()}
	if info, err := os.Stat(File(home)); err == nil {
		d.at = info.ModTime()
	}
	return d
}

// Get returns the name of the default model, "" if the file names none. It reads the file again if its time has changed. A file with
// errors changes nothing.
func (d *liveDefault) Get() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	info, err := os.Stat(File(d.home))
	if err != nil || info.ModTime().Equal(d.at) {
		return d.name
	}
	data, err := os.ReadFile(File(d.home))
	if err != nil || bytes.Equal(data, d.data) {
		return d.name
	}
	d.at, d.data = info.ModTime(), data
	c, err := Parse(data)
	if err != nil {
		return d.name
	}
	d.name = c.DefaultName()
	if d.name != "" && c.appliedLive(d.read) {
		now := time.Now()
		_ = os.Chtimes(socket.InfoFile(d.home), now, now) // if it fails, commands advise a restart that is not needed
	}
	return d.name
}

// appliedLive reports whether a daemon that has read other uses all of c: the default model and the rules may differ.
func (c Config) appliedLive(other Config) bool {
	c.Model, c.Rules = other.Model, other.Rules
	return reflect.DeepEqual(c, other)
}
