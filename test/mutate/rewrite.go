package main

import (
	"bytes"
	"cmp"
	"slices"
)

// rewrite returns a file that contains all its mutants, none of them active. Line
// numbers stay the same.
func rewrite(text []byte, mutants []mutant) []byte {
	type numbered struct {
		edit
		number int
	}
	var all []numbered
	for _, m := range mutants {
		for _, e := range m.edits {
			all = append(all, numbered{e, m.number})
		}
	}
	slices.SortStableFunc(all, func(a, b numbered) int {
		if c := cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.rank(), b.rank())); c != 0 {
			return c
		}
		if a.rank() == closing { // inner edits close first
			return cmp.Or(cmp.Compare(b.closes, a.closes), cmp.Compare(b.number, a.number))
		}
		return cmp.Or(cmp.Compare(b.opens, a.opens), cmp.Compare(a.number, b.number))
	})
	var out bytes.Buffer
	at := 0
	for _, e := range all {
		out.Write(text[at:e.start])
		out.WriteString(e.text)
		at = e.end
	}
	out.Write(text[at:])
	return out.Bytes()
}

// The order of edits at the same position.
const (
	closing = iota
	opening
	replacing
)

// rank orders edits at the same position: regions close before others open, and
// replacements come last.
func (e edit) rank() int {
	switch {
	case e.end > e.start:
		return replacing
	case e.opens > 0:
		return opening
	default:
		return closing
	}
}

// lineAt returns the line at an offset without surrounding space.
func lineAt(text []byte, offset int) string {
	start := bytes.LastIndexByte(text[:offset], '\n') + 1
	line, _, _ := bytes.Cut(text[start:], []byte("\n"))
	return string(bytes.TrimSpace(line))
}

// support is a file that is added to each mutated package. It selects the active
// mutant and records which ones were reached.
const support = `package %s

import (
	"cmp"
	"os"
	"strconv"
	"sync"
)

var (
	mutantOn_, _      = strconv.Atoi(os.Getenv("MUTANT"))
	mutantsReached_   sync.Map
	mutantsReachedTo_ = os.Getenv("MUTANTS_REACHED")
)

func mutated_(n int) bool {
	if mutantsReachedTo_ != "" {
		mutantReached_(n)
	}
	return n == mutantOn_
}

func mutantReached_(n int) {
	if _, again := mutantsReached_.LoadOrStore(n, true); again {
		return
	}
	f, err := os.OpenFile(mutantsReachedTo_, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	f.WriteString(strconv.Itoa(n) + "\n")
	f.Close()
}

func mutatedLess_[T cmp.Ordered](n int, a, b T) bool         { return a < b || mutated_(n) && a == b }
func mutatedLessEqual_[T cmp.Ordered](n int, a, b T) bool    { return a < b || !mutated_(n) && a == b }
func mutatedGreater_[T cmp.Ordered](n int, a, b T) bool      { return a > b || mutated_(n) && a == b }
func mutatedGreaterEqual_[T cmp.Ordered](n int, a, b T) bool { return a > b || !mutated_(n) && a == b }

type mutatedNumber_ interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr | ~float64
}

func mutatedPlus_[T mutatedNumber_](n int, a, b T) T {
	if mutated_(n) {
		return a
	}
	return a + b
}

func mutatedMinus_[T mutatedNumber_](n int, a, b T) T {
	if mutated_(n) {
		return a
	}
	return a - b
}
`
