package child

import "os"

// Pipes are the two pipes between lashd and a program. lashd writes In and reads Out. The program's
// ends are ItsIn, its stdin, and ItsOut, its stdout.
type Pipes struct{ In, Out, ItsIn, ItsOut *os.File }

// NewPipes opens both pipes. The caller closes all four ends.
func NewPipes() (p Pipes, err error) {
	if p.ItsIn, p.In, err = os.Pipe(); err != nil {
		return p, err
	}
	if p.Out, p.ItsOut, err = os.Pipe(); err != nil {
		closeAll(p.In, p.ItsIn)
	}
	return p, err
}

// CloseOurs closes the ends of lashd.
func (p Pipes) CloseOurs() { closeAll(p.In, p.Out) }

// CloseIts closes lashd's copies of the program's ends. Call it after the start, when the program
// has its own; otherwise Out never reports the end of the program's output.
func (p Pipes) CloseIts() { closeAll(p.ItsIn, p.ItsOut) }

// closeAll ignores errors: closing a pipe loses nothing.
func closeAll(files ...*os.File) {
	for _, f := range files {
		f.Close()
	}
}
