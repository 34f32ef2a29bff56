// SPDX-License-Identifier: BSD-3-Clause
// The credits of libbx/core/credits.h between two sides that call each other: both send REQUESTS requests, and each
// request is answered. What the model adds to the C++: a request lies in its receive until there is one of PLACES
// places to be served in, and its place is free again only when its answer has left.
//
// Names of assertions are those of check_invariants() and of docs/credits.md. Grants of messages that have another
// behind them may be LOST; the connection may BREAK, and then what was under way arrives late. With CONTROL_LANE pure
// grants go by a lane of their own, and so arrive before or after whatever was sent earlier or later.
//
// Deliberate faults, each of which must be refuted: BREAK_INCREMENTS, BREAK_NO_RESERVE, BREAK_GRANT_COSTS_CREDIT,
// BREAK_UNBOUNDED_CONTROL, BREAK_EARLY_GRANT, BREAK_NO_EPOCH, BREAK_LAST_HEARD, BREAK_OVERTAKING_GRANT. (Grants that cost a credit cause grants for ever, which
// shows as a counter that overflows.)
#ifndef REQUESTS
#define REQUESTS 3
#endif
#ifndef WINDOW_A
#define WINDOW_A 3
#endif
#ifndef WINDOW_B
#define WINDOW_B 2
#endif
#ifndef LOST
#define LOST 1
#endif
#ifndef BREAKS
#define BREAKS 0
#endif
#ifndef PLACES
#define PLACES 1
#endif
#define CONTROL 2 /* kControlSlots */
#ifdef BREAK_NO_RESERVE
#define RESERVED 0
#else
#define RESERVED 1 /* kCreditsReserved */
#endif

mtype = { request, answer, pure };

/* kind, epoch, grant, control_ack; the length of a channel is more than can ever be under way */
chan to[2] = [8] of { mtype, byte, byte, byte };
#ifdef CONTROL_LANE
chan control_to[2] = [8] of { mtype, byte, byte, byte };
#endif

byte window[2];    /* receives that side i keeps for the other */
byte granted[2], consumed[2];                       /* CreditLedger of side i */
byte posted[2], received[2], told[2];               /* CreditIssuer of side i */
byte control_sent[2], control_confirmed[2], control_received[2], control_acked[2];
byte unsent[2], answered[2];                        /* requests of side i */
byte kept[2], serving[2];                           /* requests that side i received */
byte epoch = 0, lost = 0, breaks = 0;

#define available(i) (granted[i] - consumed[i])
#define owed(i)      (posted[i] - told[i])
#define peer_has(i)  (told[i] - received[i])
#define finished     (answered[0] == REQUESTS && answered[1] == REQUESTS)
#ifdef BREAK_UNBOUNDED_CONTROL
#define control_free(i) true
#else
#define control_free(i) (control_sent[i] - control_confirmed[i] < CONTROL)
#endif
#ifdef BREAK_GRANT_COSTS_CREDIT
#define may_grant(i) (available(i) > 0)
#else
#define may_grant(i) control_free(i)
#endif
#define due(i) (owed(i) > 0 && (2 * owed(i) >= window[i] || 4 * peer_has(i) <= window[i] || peer_has(i) <= 1))

#ifdef BREAK_EARLY_GRANT
#define early 1
#else
#define early 0
#endif
#ifdef BREAK_NO_EPOCH
#define current(e) true
#else
#define current(e) (e == epoch)
#endif

#ifdef BREAK_INCREMENTS
#define grant_of(i) (posted[i] - told[i])
#else
#define grant_of(i) posted[i]
#endif

#ifdef CONTROL_LANE
byte told_in_order[2];
#ifdef BREAK_OVERTAKING_GRANT
#define held_back(i) false
#else
#define held_back(i) (control_sent[i] != control_confirmed[i])
#endif
#endif

/* What is lost is made good by what was sent later: of a lane of its own nothing is known to be. */
#ifdef CONTROL_LANE
#define may_lose(i) (nempty(to[i]) && kind != pure)
#else
#define may_lose(i) nempty(to[i])
#endif

/* CreditIssuer::notice() and the message that carries it */
inline send(i, kind) {
#ifdef CONTROL_LANE
  if
  :: kind == pure ->
       control_to[1 - i]!kind(epoch, grant_of(i), control_received[i]);
       told[i] = posted[i]
  :: else ->
       if
       :: held_back(i)
       :: else -> told[i] = posted[i]; told_in_order[i] = posted[i]
       fi;
       to[1 - i]!kind(epoch, told_in_order[i], control_received[i])
  fi;
#else
  to[1 - i]!kind(epoch, grant_of(i), control_received[i]);
  told[i] = posted[i];
#endif
  control_acked[i] = control_received[i]
}

/* CreditLedger::on_grant() */
inline on_grant(i, grant) {
#ifdef BREAK_INCREMENTS
  granted[i] = granted[i] + grant;
#elif defined(BREAK_LAST_HEARD)
  granted[i] = grant;
  assert(granted[i] >= consumed[i]);
#else
  if
  :: grant > granted[i] -> granted[i] = grant
  :: else
  fi;
#endif
  assert(available(i) <= window[1 - i])             /* grant_within_window */
}

inline on_message(i, kind) {
  if
  :: kind == pure ->
#ifdef BREAK_GRANT_COSTS_CREDIT
       received[i]++;
       posted[i]++
#else
       control_received[i]++;
       assert(control_received[i] - control_acked[i] <= CONTROL)    /* control_bounded */
#endif
  :: else ->
       assert(posted[i] - kept[i] * early > received[i]);           /* receive_behind_credit */
       received[i]++;
       if
       :: kind == request -> kept[i]++;
            if
            :: early -> posted[i]++
            :: else
            fi
       :: else -> posted[i]++;
            answered[i]++
       fi
  fi;
  assert(posted[i] - received[i] <= window[i])                      /* credits_conserved */
}

proctype side(byte i) {
  mtype kind;
  byte e, grant, ack;
  do
  :: atomic { unsent[i] > 0 && available(i) > RESERVED -> unsent[i]--; consumed[i]++; send(i, request) }
  :: atomic { serving[i] > 0 && available(i) > 0 -> serving[i]--; consumed[i]++; send(i, answer) }
  :: atomic { kept[i] > 0 && serving[i] < PLACES -> kept[i]--; serving[i]++; posted[i] = posted[i] + 1 - early }
  :: atomic { due(i) && may_grant(i) ->
#ifdef BREAK_GRANT_COSTS_CREDIT
       consumed[i]++;
#else
       control_sent[i]++;
#endif
       send(i, pure) }
  :: atomic {
       if
       :: to[i]?kind(e, grant, ack)
#ifdef CONTROL_LANE
       :: control_to[i]?kind(e, grant, ack)
#endif
       fi;
       if
       :: !current(e)                               /* void */
       :: else ->
            if
            :: on_grant(i, grant)
            :: lost < LOST && may_lose(i) -> lost++
            fi;
            if
            :: ack > control_confirmed[i] -> control_confirmed[i] = ack
            :: else
            fi;
            on_message(i, kind)
       fi;
       kind = pure; e = 0; grant = 0; ack = 0 }     /* nothing to remember */
  :: finished -> break
  od
}

inline begin(i) {
  granted[i] = window[1 - i]; consumed[i] = 0;
  posted[i] = window[i]; told[i] = window[i]; received[i] = 0;
  control_sent[i] = 0; control_confirmed[i] = 0; control_received[i] = 0; control_acked[i] = 0;
  kept[i] = 0; serving[i] = 0;
#ifdef CONTROL_LANE
  told_in_order[i] = window[i];
#endif
  unsent[i] = REQUESTS - answered[i]                /* what is not answered is asked again */
}

init {
  atomic {
    window[0] = WINDOW_A; window[1] = WINDOW_B;
    begin(0); begin(1);
    run side(0); run side(1)
  }
  do
  :: atomic { breaks < BREAKS && !finished -> breaks++; epoch++; begin(0); begin(1) }
  :: break
  od
}

ltl everything_is_answered { <> finished }
