// SPDX-License-Identifier: BSD-3-Clause
// The receive pool of libbx/core/receive_shares.h: PEERS peers, each with a floor and a guaranteed share, borrowing
// what the others do not use. Peer 0 falls silent and comes back as it likes; the others always have something to send.
// With SILENT the others may fall silent for ever, loans in hand: then peer 0 has its floor, and that must do.
//
// Deliberate faults, each of which must be refuted: BREAK_RENEW, BREAK_LEND_FLOOR, BREAK_OVERPROMISE, BREAK_NOT_RETURNED,
// BREAK_OVERTAKE.
#define PEERS 3
#define RECEIVES 6
#define FLOOR 1
#define GUARANTEED 2
#define MOST 4

byte promised[PEERS], held[PEERS];
bool wanting[PEERS], wants[PEERS], silent[PEERS];
bool got = false;       /* peer 0 has sent a message */
byte free = RECEIVES;
chan line = [PEERS] of { byte };    /* those that want, the longest waiting first */

#define used(i)      (promised[i] + held[i])
#define lacks(i, n)  (used(i) < n -> n - used(i) : 0)
#ifdef BREAK_RENEW
#define kept_for(i)  FLOOR
#else
#define kept_for(i)  (wanting[i] -> GUARANTEED : FLOOR)
#endif
#define floors  (lacks(0, FLOOR) + lacks(1, FLOOR) + lacks(2, FLOOR))
#ifdef BREAK_LEND_FLOOR
#define kept 0
#define own_free(i) (free > 0)
#else
#define kept    (lacks(0, kept_for(0)) + lacks(1, kept_for(1)) + lacks(2, kept_for(2)))
#ifdef BREAK_OVERTAKE
#define first(i) true
#else
#define first(i) (len(line) == 0 || line?[eval(i)])
#endif
/* ReceiveShares::own_room() */
#define own_free(i) (used(i) < FLOOR || \
                     (first(i) && free > floors - lacks(i, FLOOR)) || \
                     (!first(i) && free > kept - lacks(i, kept_for(i))))
#endif

inline check() {
  assert(promised[0] + promised[1] + promised[2] + held[0] + held[1] + held[2] <= RECEIVES);  /* shares_promised */
#ifndef BREAK_LEND_FLOOR
  assert(free >= floors)                                                                    /* floor_kept */
#endif
}

inline want(i) {
  if
  :: !wanting[i] -> wanting[i] = true; line!i
  :: else
  fi
}
inline satisfied(i) {
  if
  :: wanting[i] -> wanting[i] = false; line??eval(i)
  :: else
  fi
}

/* ReceiveShares::promise(i, 1) */
inline promise(i) {
  if
  :: used(i) < GUARANTEED ->
       if
#ifdef BREAK_OVERPROMISE
       :: true -> promised[i]++;
            if
            :: free > 0 -> free--
            :: else
            fi
#else
       :: own_free(i) -> promised[i]++; free--
       :: else -> want(i)
#endif
       fi;
       if
       :: used(i) >= GUARANTEED -> satisfied(i)
       :: else
       fi
  :: else ->
       satisfied(i);
       if
       :: used(i) < MOST && free > kept -> promised[i]++; free--
       :: else
       fi
  fi;
  check()
}

/* grants to whoever asks, in turn */
active proctype receiver() {
  byte i = 0;
  do
  :: atomic { if
              :: wants[i] -> promise(i)
              :: else -> satisfied(i)
              fi;
              i = (i + 1) % PEERS }
  od
}

/* where its share must come back, peer 0 sends nothing until it has it */
#ifdef SILENT
#define saving(i) false
#else
#define saving(i) (i == 0 && wanting[0])
#endif

proctype peer(byte i) {
  do
  :: atomic { wants[i] && !silent[i] && !saving(i) && promised[i] > 0 -> promised[i]--; held[i]++;
       if
       :: i == 0 -> got = true
       :: else
       fi }
  od
}

/* the application lets go of what it was given */
proctype application(byte i) {
  do
  :: atomic { held[i] > 0 -> held[i]--;
#ifdef BREAK_NOT_RETURNED
       if
       :: used(i) >= GUARANTEED
       :: else -> free++
       fi
#else
       free++;
#endif
       check() }
  od
}

/* when peer 0 has something to send */
active proctype demand() {
  do
  :: atomic { !wants[0] -> wants[0] = true; got = false }
  :: atomic { wants[0] && got -> wants[0] = false; satisfied(0) }
#ifdef SILENT
  :: silent[1] = true
  :: silent[2] = true
#endif
  od
}

init {
  atomic {
    wants[1] = true; wants[2] = true;
    run peer(0); run peer(1); run peer(2);
    run application(0); run application(1); run application(2)
  }
}

#ifdef SILENT
ltl a_floor_is_enough_to_send { [] (wants[0] -> <> (got || !wants[0])) }
#else
ltl a_share_comes_back { [] (wanting[0] -> <> !wanting[0]) }
#endif
