// Package upload keeps what clients send in parts until it is complete. It holds the parts in memory only: a client starts over after a
// restart of the daemon.
package upload

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"lashd/engine/param"
	"lashd/persistence"
)

const (
	// cost is what each upload counts beyond its bytes, which limits their number.
	cost = 256 << 10
	// idle is how long an upload may wait for its next part before it can be dropped.
	idle = 10 * time.Minute
)

// Uploads holds unfinished uploads. Its methods are safe for concurrent use. Limit, the bytes of one upload, is required.
type Uploads struct {
	What  string // a noun for errors, such as artifact
	Limit int
	Many  int // as many uploads of the largest size fit together

	mu sync.Mutex
	// open maps the key of an upload to it. mu guards it.
	open map[string]*one
	// size is the cost of all uploads in open.
	size int
}

// one is an unfinished upload. Uploads.mu guards it.
type one struct {
	data []byte
	last time.Time // when the newest part arrived; zero: the upload is not in the map yet
}

// cost returns how many bytes a part adds to Uploads.size. The first part also pays for the upload.
func (o *one) cost(part []byte) int {
	if o.last.IsZero() {
		return cost + len(part)
	}
	return len(part)
}

// has reports whether the upload already contains the part, at its offset. An empty part never counts.
func (o *one) has(offset int64, part []byte) bool {
	if len(part) == 0 || offset > int64(len(o.data)) {
		return false
	}
	return bytes.HasPrefix(o.data[offset:], part)
}

// Add appends a part to the upload of a key and returns all bytes so far. A part that was added before changes nothing. An error is a
// *param.Error or wraps persistence.ErrBudget. The caller must not modify the returned slice.
func (u *Uploads) Add(key string, offset int64, part []byte) ([]byte, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.expire()
	o := u.open[key]
	if o == nil {
		o = &one{}
	}
	if o.has(offset, part) {
		return o.data, nil
	}
	if err := u.fits(o, offset, part); err != nil {
		return nil, err
	}
	if u.open == nil {
		u.open = map[string]*one{}
	}
	u.size += o.cost(part)
	u.open[key] = o
	o.data, o.last = append(o.data, part...), time.Now()
	return o.data, nil
}

// fits checks that a part continues its upload without a gap, and that the upload and all uploads stay within their limits.
func (u *Uploads) fits(o *one, offset int64, part []byte) error {
	most := u.Many * (u.Limit + cost)
	switch have := len(o.data); {
	case offset != int64(have):
		return param.Bad("/offset", "must be %d, the number of bytes received so far; a restart of the daemon discards unfinished uploads", have)
	case have+len(part) > u.Limit:
		return fmt.Errorf("the %s is larger than %d bytes: %w", u.What, u.Limit, persistence.ErrBudget)
	case u.size+o.cost(part) > most:
		return fmt.Errorf("unfinished uploads take more than %d bytes; finish some, or wait ten minutes for idle ones to expire: %w", most, persistence.ErrBudget)
	}
	return nil
}

// expire drops uploads that received no part for a while. The caller holds u.mu.
func (u *Uploads) expire() {
	for key, o := range u.open {
		if time.Since(o.last) > idle {
			u.drop(key)
		}
	}
}

// Forget drops an upload that was used.
func (u *Uploads) Forget(key string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.drop(key)
}

// drop removes an upload, if there is one. The caller holds u.mu.
func (u *Uploads) drop(key string) {
	if o := u.open[key]; o != nil {
		u.size -= cost + len(o.data)
		delete(u.open, key)
	}
}
