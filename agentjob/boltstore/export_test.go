package boltstore

// CompactAtOnce lets all stores of this process be compacted as soon as there is something to gain.
func CompactAtOnce() { compactDelay = 0 }
