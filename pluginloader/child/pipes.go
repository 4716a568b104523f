package child

import "os"

// Pipes are the two that join lashd and a program: the ends of lashd, and those of the program.
type Pipes struct{ In, Out, ItsIn, ItsOut *os.File }

// NewPipes opens them. The caller closes them.
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

// CloseIts closes the ends of the program, which it has by itself once it is started.
func (p Pipes) CloseIts() { closeAll(p.ItsIn, p.ItsOut) }

// closeAll has no outcome to report: the files are pipes, and ours.
func closeAll(files ...*os.File) {
	for _, f := range files {
		f.Close()
	}
}
