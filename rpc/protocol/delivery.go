package protocol

// Delivery is when queued work reaches its session.
type Delivery string

const (
	DeliverEarliest  Delivery = "earliestBoundary" // also into the running turn, at its next checkpoint
	DeliverAfterTurn Delivery = "afterTurn"        // in a turn of its own, after those that are queued
)
