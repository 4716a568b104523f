package bench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"
)

// tick is the unit of CPU times in /proc, which is 1/100 s on every Linux system.
const tick = 10 * time.Millisecond

var errNoStat = errors.New("unexpected shape of /proc stat")

// RSS returns the resident memory of the daemon's process in bytes. Linux only.
func (p *Peer) RSS() (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(b), &size, &resident); err != nil {
		return 0, err
	}
	return resident * int64(os.Getpagesize()), nil
}

// PeakRSS returns the peak resident memory of the daemon's process in bytes. Linux only.
func (p *Peer) PeakRSS() (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, most, _ := bytes.Cut(b, []byte("VmHWM:"))
	var kB int64
	if _, err := fmt.Sscan(string(most), &kB); err != nil {
		return 0, fmt.Errorf("VmHWM: %w", err)
	}
	return kB << 10, nil
}

// CPU returns the CPU time of the daemon and of the children that it has waited for, in steps of 10
// ms. Linux only.
func (p *Peer) CPU() (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	// The name, in parentheses, may hold spaces; utime to cstime are the 12th to 15th field after it.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 15 {
		return 0, errNoStat
	}
	var ticks time.Duration
	for _, f := range fields[11:15] {
		var n int64
		if _, err := fmt.Sscan(string(f), &n); err != nil {
			return 0, errNoStat
		}
		ticks += time.Duration(n)
	}
	return ticks * tick, nil
}
