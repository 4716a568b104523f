package tool

import (
	"runtime"
	"time"
)

// patience is how long a provider may take to say what it offers, and what its contracts are: it is not to wait for anything.
const patience = 5 * time.Second

// within asks a provider for something. One that does not return in time is left alone, and what it comes to goes nowhere; until
// it does return, it is asked nothing more.
func within[T any](p *part, slot string, ask func() (T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	var none T
	if p.out.Load() > 0 {
		return none, &SlowError{p.label, slot}
	}
	done := make(chan answer, 1)
	go func() {
		var a answer
		defer func() { done <- a }()
		defer guard(&a.err)
		a.v, a.err = ask()
	}()
	runtime.Gosched() // most have answered after that, without a timer
	select {
	case a := <-done:
		return a.v, a.err
	default:
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case a := <-done:
		return a.v, a.err
	case <-late.C:
		p.out.Add(1)
		go func() {
			<-done
			p.out.Add(-1)
		}()
		return none, &SlowError{p.label, slot}
	}
}
