package endpoint

import "strconv"

// Count is a number of tokens in an answer: between 0 and MaxCount, so that sums of counts do not overflow.
type Count int64

// MaxCount is the largest Count.
const MaxCount = 1 << 40

// UnmarshalJSON implements json.Unmarshaler. A value that is not a number counts as 0: a reply is worth more than its usage.
func (c *Count) UnmarshalJSON(data []byte) error {
	n, _ := strconv.ParseFloat(string(data), 64) // 0 for what is not a number, infinite for what is too large
	*c = Count(min(max(n, 0), MaxCount))
	return nil
}
