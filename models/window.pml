// SPDX-License-Identifier: BSD-3-Clause
// The receiver's budget of libbx/core/receiver_budget.h with more peers than it has chunks for, over senders whose NIC
// window (send_window.h) has room for one chunk and is shared with traffic to somebody else. Peers come and go.
//
// Deliberate faults, each of which must be refuted: BREAK_NO_LINE, BREAK_FORGET, BREAK_NOT_RETURNED, BREAK_HIGH_MARK.
#define PEERS 3
#define BUDGET 2     /* chunks */
#define SHARE_MIN 1
#define HIGH 1       /* of each sender's NIC */
#define CHUNKS 2     /* of a message */

bool claims[PEERS];
byte outstanding[PEERS];    /* taken and not arrived, as the budget counts it */
byte granted[PEERS];        /* the sender may write so many */
byte flying[PEERS];         /* and these are on their way */
byte nic[PEERS];            /* in flight at the sender, to whomever */
byte left[PEERS];           /* chunks of the message not yet asked for */
byte all = 0;               /* outstanding of all */
bool waiting[PEERS];
chan line = [PEERS] of { byte };

#define claiming (claims[0] + claims[1] + claims[2])
#define share    (BUDGET / claiming > SHARE_MIN -> BUDGET / claiming : SHARE_MIN)
#define on_the_way (granted[0] + granted[1] + granted[2] + flying[0] + flying[1] + flying[2])

/* ReceiverBudget::take(i, one chunk), i being first in line or nobody being there */
inline take(i) {
  all++;
  outstanding[i]++;
  granted[i]++;
  left[i]--;
  assert(all <= BUDGET && on_the_way <= BUDGET)     /* budget_kept */
}

/* asks for chunks of the message of its peer, and for the next message when that has come */
proctype transfer(byte i) {
  do
  :: atomic { !claims[i] && outstanding[i] == 0 -> claims[i] = true; left[i] = CHUNKS }
#ifdef BREAK_NO_LINE
  :: atomic { left[i] > 0 && (outstanding[i] == 0 || outstanding[i] < share) ->
       if
       :: all < BUDGET -> take(i)
       :: else
       fi }
#else
  :: atomic { left[i] > 0 && !waiting[i] && (outstanding[i] == 0 || outstanding[i] < share) ->
       if
       :: len(line) == 0 && all < BUDGET -> take(i)
       :: else -> waiting[i] = true; line!i
       fi }
#endif
  :: atomic { claims[i] && left[i] == 0 -> claims[i] = false;
#ifdef BREAK_FORGET
       all = all - outstanding[i]; outstanding[i] = 0
#endif
     }
  od
}

/* gives the room that came back to the first in line: next_waiting() */
active proctype server() {
  byte i;
  do
  :: atomic { line?[i] && all < BUDGET ->
       line?i; waiting[i] = false;
       if
       :: outstanding[i] == 0 || outstanding[i] < share -> take(i)
       :: else                                      /* its share shrank: tries again itself */
       fi; i = 0 }
  od
}

#ifdef BREAK_HIGH_MARK
#define room(i) true
#else
#define room(i) (nic[i] < HIGH)
#endif

/* posts granted chunks when the NIC has room */
proctype sender(byte i) {
  do
  :: atomic { granted[i] > 0 && room(i) -> granted[i]--; flying[i]++; nic[i]++;
       assert(nic[i] <= HIGH) }                     /* window_kept */
  od
}

/* brings what flies; a sender's other traffic takes its place in the NIC in between, if it can */
proctype network(byte i) {
  do
  :: atomic { flying[i] > 0 -> flying[i]--; nic[i]--;
#ifdef BREAK_NOT_RETURNED
       if
       :: claims[i] -> outstanding[i]--; all--
       :: else
       fi
#else
       if
       :: outstanding[i] > 0 -> outstanding[i]--; all--
       :: else
       fi
#endif
     }
  od
}

init {
  atomic {
    run transfer(0); run transfer(1); run transfer(2);
    run sender(0); run sender(1); run sender(2);
    run network(0); run network(1); run network(2)
  }
}

ltl every_claim_is_served { [] (claims[0] && left[0] > 0 -> <> (left[0] < CHUNKS)) }
