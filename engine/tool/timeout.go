package tool

import (
	"runtime"
	"time"
)

// requestTimeout limits each request to a provider for its tools or contracts. Providers must not wait for anything there.
const requestTimeout = 5 * time.Second

// withTimeout sends a request to a provider. slot names the request in errors. A request that takes longer than
// requestTimeout is abandoned, and its result is dropped. Until it returns, further requests to the provider fail with
// a SlowError at once, so a stuck provider delays a session only once. A panic becomes a PanicError.
func withTimeout[T any](p *part, slot string, ask func() (T, error)) (T, error) {
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
	runtime.Gosched() // most requests have finished after that, which saves a timer
	select {
	case a := <-done:
		return a.v, a.err
	default:
	}
	late := time.NewTimer(requestTimeout)
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
