"""What the made-up contracts say: clauses, the questions asked about them, and what stands around.

Nothing here is code. A text is markup that :mod:`sample_layout` lays out:

- white space is folded, a blank line starts a paragraph;
- ``{slot}`` is a fact of the agreement (:mod:`sample_deals` lists them);
- ``[one|other]`` is a choice, made once per agreement;
- ``<...>`` marks what answers a question about the clause it stands in, ``<key|...>`` what answers
  one about the clause ``key``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """A question about a clause.

    ``place`` says where its gold is: "own" (the clause itself), "again" (what the special
    conditions add to it), or None: wherever the contract answers it, which may be both.
    """

    text: str
    place: str | None = None


@dataclass(frozen=True)
class Clause:
    """One clause type: its name, its article, alternative texts, and the questions about it.

    ``again`` is a second provision on the same matter, far away, in the special conditions.
    ``again_title`` is what stands over it there, which says nothing about the matter.
    """

    name: str
    article: str
    titles: tuple[str, ...]
    texts: tuple[str, ...]
    questions: tuple[Question, ...]
    again: str | None = None
    again_title: str = ""


ARTICLES: dict[str, tuple[str, ...]] = {
    "scope": ("Appointment and Scope", "Scope of the Relationship", "Grant and Scope"),
    "performance": ("Performance", "Standards of Performance", "Delivery and Performance"),
    "commercial": ("Commercial Terms", "Fees and Payment", "Prices and Charges"),
    "covenants": ("Covenants of the Parties", "Protective Covenants", "Undertakings"),
    "risk": ("Allocation of Risk", "Warranties and Liability", "Risk and Responsibility"),
    "duration": ("Duration and Exit", "Term and Termination", "Life of this Agreement"),
    "general": ("General Provisions", "Miscellaneous", "Final Provisions"),
}
"""The articles of a contract, in order, and what may stand over each."""


CLAUSES: dict[str, Clause] = {
    "governing_law": Clause(
        "Governing Law",
        "general",
        ("Governing Law", "Applicable Law", "Choice of Law"),
        (
            """<This Agreement, and every non-contractual claim that grows out of it, is governed by
            the laws of {law}, without regard to rules that would point to the law of another
            place.> The United Nations Convention on Contracts for the International Sale of Goods
            [does not apply|is excluded in full].""",
            """<The validity, the meaning and the performance of this Agreement {shall} be judged
            under the substantive law of {law}.> Provisions of the place where the {goods} are used
            that cannot be contracted out of stay unaffected. A reference in this Agreement to a
            statute is a reference to it as amended from time to time.""",
        ),
        (
            Question("Which country's or state's law decides how the contract is interpreted?"),
            Question("When the parties argue about what a term means, whose legal system counts?"),
            Question(
                "What legal regime covers orders that an affiliate places from {city2}?", "again"
            ),
            Question("governed by the laws of {law}", "own"),
        ),
        """<Orders that an affiliate of the {b} places from {city2} follow the law of {law2} in
        place of the law chosen in the body of this Agreement.> The affiliate {shall} say in the
        order that it is acting under this paragraph.""",
        "Affiliates in {city2}",
    ),
    "disputes": Clause(
        "Dispute Resolution",
        "general",
        ("Resolution of Disputes", "Disputes", "Escalation and Arbitration"),
        (
            """The project leads {shall} first try to settle a difference between themselves. <If
            they have not done so within {step_days} days, the matter goes to the chief executives,
            and, if it is still open after a further {step_days} days, it is finally settled by
            three arbitrators sitting in {city}, who {shall} conduct the proceedings in English.>
            Nothing in this [clause|provision] keeps a party from asking a court for urgent
            relief.""",
            """<Each party submits to the exclusive jurisdiction of the courts sitting in {city} for
            anything that concerns this Agreement>, and waives the objection that those courts are
            inconvenient. Before it files a claim, a party {shall} offer the other a meeting of
            senior managers. Each party gives up trial by jury to the extent that this is
            permitted.""",
        ),
        (
            Question("How and where are disagreements between the parties finally settled?"),
            Question("Where would somebody have to sue, or is a private tribunal used instead?"),
            Question("arbitrators or courts in {city}: procedure", "own"),
            Question("What is {person_c} to decide?", "again"),
        ),
        """A difference over the reading of a meter, a sample or a test report is no matter for the
        forum named earlier. <It is decided by {person_c} as expert, whose written finding binds
        both sides unless it is plainly wrong, and whose fees the losing side bears.>""",
        "Technical findings",
    ),
    "term": Clause(
        "Initial Term",
        "duration",
        ("Term", "Initial Term", "Commencement and Duration"),
        (
            """<This Agreement begins on {date} (the “Effective Date”) and, unless it is ended
            earlier as this Agreement allows, remains in force for {term_years} years (the “Initial
            Term”).> Orders accepted before the last day are carried out under the terms that
            applied when they were placed.""",
            """<The first period of this Agreement runs from {date} until the end of the day before
            its anniversary {term_years} years later.> A delay in the start of the {goods},
            whatever its cause, does not move either date. The words “Initial Term” mean that
            period.""",
        ),
        (
            Question("How long is the first contract period and when does it start?"),
            Question("Until when are the parties bound if nobody extends the deal?"),
            Question("Initial Term of {term_years} years from {date}"),
        ),
    ),
    "renewal": Clause(
        "Renewal Term",
        "duration",
        ("Renewal", "Extension", "Further Terms"),
        (
            """<At the end of the Initial Term this Agreement [renews|is extended] by itself for
            successive periods of {renew_months} months (each a “Renewal Term”)>, on the terms then
            in force. <renewal_notice|A party that does not want a further period {shall} say so in
            writing at least {renew_days} days before the running period ends.> The prices of a
            Renewal Term are those of the last month of the period before it.""",
            """There is no silent prolongation. <The {b} may extend this Agreement for a further
            {renew_months} months by a signed statement>, <renewal_notice|which must reach the {a}
            no later than {renew_days} days ahead of expiry>; an extension by conduct, by course of
            dealing or by continued ordering is excluded. [The right may be used twice.|The right
            may be used more than once.]""",
        ),
        (
            Question("What happens at the end of the initial term: is the contract prolonged?"),
            Question("Does the arrangement roll over by itself, and for how long each time?"),
            Question("Renewal Term: successive periods of months, extension, {site}"),
        ),
        """<For the {site} each further period is {pilot_months} months only>, whatever period
        applies to other sites, because the lease of that site may be called in by the
        landlord.""",
        "The {site}",
    ),
    "renewal_notice": Clause(
        "Notice to Prevent Renewal",
        "duration",
        ("Statements Before Expiry",),
        (),
        (
            Question("How far in advance must a party speak up to stop or to obtain an extension?"),
            Question("deadline for the notice of non-renewal"),
            Question("at least {renew_days} days before the running period ends or expiry"),
        ),
    ),
    "convenience": Clause(
        "Termination for Convenience",
        "duration",
        ("Termination for Convenience", "Ordinary Termination", "Withdrawal"),
        (
            """<The {b} may end this Agreement at any time, in whole or for single {goods}, without
            giving a reason, by {conv_days} days' written notice.> It {shall} then pay for what has
            been performed and for costs that the {a} can show it can no longer avoid, but no lost
            profit.""",
            """<After the first twelve (12) months either party is free to terminate this Agreement
            for convenience with effect from the end of a calendar quarter, on not less than
            {conv_days} days' notice.> [No compensation is owed for the termination as such.|The
            termination as such gives rise to no claim.] Work in hand is finished or handed over,
            as the {b} prefers.""",
        ),
        (
            Question("May a party terminate without cause, and on what notice?"),
            Question("Can one side simply walk away because it has changed its mind?"),
            Question("What does it take to drop the {system} early?", "again"),
            Question("terminate for convenience, notice of {conv_days} days", "own"),
        ),
        """<The {b} may give up the {system} separately on {pilot_days} days' notice, against
        payment of {fee} and return of the keys>; the remainder of this Agreement then continues
        at unchanged rates.""",
        "{system}",
    ),
    "cause": Clause(
        "Termination for Cause",
        "duration",
        ("Termination for Cause", "Default", "Termination for Breach"),
        (
            """<A party may terminate this Agreement with immediate effect if the other commits a
            material breach and has not put it right within {cure_days} days of a notice that
            describes it.> <It may do the same if the other stops paying its debts as they fall due,
            enters insolvency proceedings, or makes a general arrangement with its creditors.> A
            breach that cannot be put right needs no period of grace.""",
            """Each of the following is an “Event of Default”: <(i) an amount due stays unpaid for
            {cure_days} days after a reminder; (ii) a party breaks a material obligation and does
            not cure it within the same period; (iii) a receiver, liquidator or administrator is
            appointed over a substantial part of a party's assets; (iv) a licence or permit that a
            party needs to perform is withdrawn for good.> While an Event of Default lasts, the
            other party may suspend its own performance, and <may terminate this Agreement by notice
            without further delay>.""",
        ),
        (
            Question("On what grounds can the agreement be ended because of a breach?"),
            Question("What gives a party the right to get out after the other's misconduct?"),
            Question("events of default and cure period"),
        ),
    ),
    "exit": Clause(
        "Post-Termination Services",
        "duration",
        ("Effects of Expiry", "Consequences of Termination", "Exit Assistance"),
        (
            """Rights that have accrued stay as they are. <For {exit_days} days after this Agreement
            ends, for whatever reason, the {a} {shall} go on to {provide} the {goods} at the last
            agreed rates, answer questions of a successor, and hand over records in a usual
            format.> Each party returns or destroys what belongs to the other. Provisions that by
            their nature are meant to last, among them those on payment, secrecy and liability,
            survive.""",
            """On the last day each party {shall} return the other's property and pay what is due.
            <The {a} {shall} draw up a handover plan within ten (10) days of a notice of
            termination, keep the team assigned for a wind-down period of {exit_days} days, and
            sell remaining stock or spare parts to the {b} at cost.> The {b} stops using the {a}'s
            names and marks.""",
        ),
        (
            Question("Which duties continue after the contract has ended, and for how long?"),
            Question("Will the outgoing vendor help to move everything to its replacement?"),
            Question("What becomes of data in the {system} once all is over?", "again"),
            Question("wind-down period and handover after this Agreement ends", "own"),
        ),
        """<Data kept in the {system} stay readable for the {b} for {pilot_months} months after the
        end of this Agreement, free of charge>, and are then erased. A protocol of the erasure,
        form {code2}, is signed by both sides.""",
        "Archives",
    ),
    "payment": Clause(
        "Payment Terms",
        "commercial",
        ("Invoices", "Invoicing and Payment", "Payment"),
        (
            """The {a} {shall} invoice monthly in arrears and quote the order number. <Undisputed
            amounts are payable within {pay_days} days of receipt of a correct invoice, by bank
            transfer in {currency}.> The {b} may withhold a part that it disputes in good faith if
            it explains why before the due date, and {shall} pay the rest.""",
            """<Fees fall due {pay_days} days after the date of the invoice, without deduction.> A
            set-off is allowed only with claims that are undisputed or have been finally decided.
            Taxes that the law puts on the recipient are added and shown apart. An invoice that is
            not contested within sixty (60) days counts as accepted.""",
        ),
        (
            Question("When and how must invoices be paid?"),
            Question("How many days does the customer have before a bill is due?"),
            Question("purchase orders marked {code}: settlement", "again"),
        ),
        """<Purchase orders marked {code} are settled in advance: one half when the order is
        confirmed, the other half before the {goods} leave the {site}.> No discount is granted on
        them.""",
        "Orders marked {code}",
    ),
    "late": Clause(
        "Late Payment",
        "commercial",
        ("Delay in Payment", "Overdue Amounts", "Interest"),
        (
            """<A sum that is not paid when due bears interest of {late_pct} per cent a month, or
            the highest rate that the law allows if that is lower, from the due date to the day of
            payment.> After two reminders the {a} may make further {goods} depend on payment in
            advance.""",
            """<If the {b} is in arrears, the {a} may charge {late_pct} per cent a month on the open
            balance and the reasonable cost of collection>; <it may also suspend the {goods} after
            fourteen (14) days' warning>. [Interest is compounded yearly.|Interest is not
            compounded.]""",
        ),
        (
            Question("What are the consequences when a sum is not paid on time?"),
            Question("Is there a penalty for customers who are slow to settle up?"),
            Question("{late_pct} per cent a month"),
        ),
    ),
    "price": Clause(
        "Price Adjustment",
        "commercial",
        ("Adjustment of Prices", "Indexation", "Review of Charges"),
        (
            """Prices are firm for the first year. <Thereafter the {a} may once a year raise them by
            no more than the rise of the {index} over the preceding twelve (12) months, and by no
            more than {price_pct} per cent in any event.> The {a} {shall} announce an increase
            sixty (60) days ahead and show how it was worked out. <If the {index} falls by more than
            two per cent, the {b} may demand a matching reduction.>""",
            """<On each anniversary of the Effective Date the charges move with the {index}, upwards
            or downwards, but an upward move is cut off at {price_pct} per cent.> Should the
            {index} no longer be published, the parties {shall} agree on the series that comes
            closest. A change in wages, customs duty or energy cost is no further ground for an
            increase.""",
        ),
        (
            Question("Under what conditions may charges be raised or lowered?"),
            Question("How is inflation passed on to the customer?"),
            Question("{index} cap", None),
        ),
        """<Spare parts listed under {code3} keep their price for the whole of the first period>,
        and the review of charges described earlier leaves them out.""",
        "Spare parts",
    ),
    "minimum": Clause(
        "Minimum Commitment",
        "commercial",
        ("Minimum Volumes", "Purchase Commitment", "Committed Quantities"),
        (
            """<In each contract year the {b} {shall} order at least {min_units} units or pay
            {min_value}, whichever is the smaller burden.> The {a} keeps a running tally and sends
            it with every invoice. <A shortfall is made good within forty-five (45) days of the end
            of the year by a balancing payment of {min_pct} per cent of the missing value.> Units
            that the {a} could not deliver count as ordered.""",
            """Forecasts are given in good faith and bind nobody. <The {b} does, however, commit to
            a yearly spend of {min_value}.> <If it spends less, the gap is carried into the
            following year, and what is then still open becomes payable at {min_pct} per cent.>
            Returns for defects are not deducted from the spend.""",
        ),
        (
            Question("Is there a minimum order size or an amount that must be bought each year?"),
            Question("What does the customer owe if it takes less than it promised?"),
            Question("yearly spend of {min_value}", "own"),
            Question("What volumes are expected until the {site} has been accepted?", "again"),
        ),
        """<During the ramp-up, which ends with acceptance of the {site}, the yearly commitment is
        reduced by half.> The {a} may not treat lower volumes in this phase as a sign of bad
        faith.""",
        "Ramp-up",
    ),
    "favoured": Clause(
        "Most Favored Customer",
        "commercial",
        ("Parity", "Best Terms", "Equal Treatment"),
        (
            """<If the {a} offers another customer of like size better prices or terms for {goods}
            of the same kind, it {shall} offer them to the {b} from the same day> and refund the
            difference for deliveries since then. The finance officer of the {a} confirms each
            January that this has been observed.""",
            """The {a} states that the prices in the schedule are calculated with care. <It promises
            that no comparable buyer in {territory} receives terms more favourable than those
            granted to the {b}.> Rebates paid under public tenders are left out of the
            comparison.""",
        ),
        (
            Question("Must the vendor give this customer terms as good as anyone else gets?"),
            Question("What if a rival buyer has been given a cheaper deal?"),
            Question("comparable buyer or customer of like size: more favourable prices"),
        ),
    ),
    "exclusivity": Clause(
        "Exclusivity",
        "scope",
        ("Exclusivity", "Sole Rights", "Reserved Rights"),
        (
            """<Within {territory} the {b} is the only person whom the {a} {shall} allow to deal in
            the {goods}, and the {a} {shall} refer enquiries from that area to it.> Sales through
            the {a}'s own website are [included|left out]. <The right becomes non-exclusive on
            thirty (30) days' notice if the {b} misses the agreed volumes in two years running.>""",
            """<For as long as this Agreement lasts the {b} {shall} obtain all its requirements of
            {goods} for {field} from the {a} and from nobody else>, except where the {a} declares
            that it cannot deliver within ten (10) days. The {a} in turn keeps enough capacity
            free. Trials with other sources that serve research alone are allowed.""",
        ),
        (
            Question("Does one party promise to deal with the other alone?"),
            Question("Is the {b} allowed to turn to other sources or the {a} to other partners?"),
            Question("Sole channel for model {code3}", "again"),
        ),
        """<Model {code3} is reserved: until acceptance of the {site} the {a} {shall} place it with
        no one but the {b}>, not even for display at a trade fair.""",
        "Model {code3}",
    ),
    "license": Clause(
        "License Grant",
        "scope",
        ("Grant of Rights", "License", "Rights of Use"),
        (
            """<The {a} grants the {b} a non-exclusive, non-transferable right, for the term of this
            Agreement and in {territory}, to use the {system}, its manuals and the marks that go
            with it as far as is needed to receive the {goods}.> The {b} {shall} not decompile,
            rent out or publish it, nor remove notices. <It may make two copies for safekeeping.>
            Rights that are not granted here stay with the {a}.""",
            """<Against payment of the fees the {b} may install and run the {system} at the {site},
            for its own business in {field} only, with up to {seats} named users.> A sublicense
            needs consent for each case. Open-source parts come under their own terms, listed in
            file {code2}. [Updates are included.|Updates are part of the license.]""",
        ),
        (
            Question("What permission to use software or marks is given, and within what limits?"),
            Question("Who may work with the {system}, and within what limits?"),
            Question("May outside helpers log in to the {system}?", "again"),
        ),
        """<Contractors of the {b} may use the {system} on its behalf for the project {code2} if
        they have signed the form of undertaking>; the {b} answers for them as for its own
        staff.""",
        "Contractors",
    ),
    "refusal": Clause(
        "Right of First Refusal",
        "scope",
        ("New Lines", "Priority Rights", "First Offer"),
        (
            """<Before the {a} offers a new line in {field} to a third party for {territory}, it
            {shall} offer it to the {b} on the same terms and leave the offer open for {step_days}
            days.> If the {b} declines or says nothing, the {a} is free for six (6) months.""",
            """The parties expect to widen the range. <If the {a} receives a bona fide bid for the
            business to which the {goods} belong, the {b} has {step_days} days in which to match
            it.> The {a} {shall} disclose the price and the main terms, though not the bidder's
            name.""",
        ),
        (
            Question("Does a party get the chance to match or take an offer before outsiders do?"),
            Question("Who comes first in line when a new line or the business is sold?"),
            Question("first refusal: offer, bid, match within {step_days} days"),
        ),
    ),
    "delivery": Clause(
        "Delivery",
        "performance",
        ("Delivery", "Handover", "Dispatch and Acceptance"),
        (
            """Orders are placed through the portal and confirmed within two (2) Business Days. <The
            {a} {shall} deliver to the {site}, unloaded and free of charges, within {lead_days} days
            of confirmation. The {b} looks over what arrives within ten (10) days; hidden faults
            may be notified within ten (10) days of their discovery. Title and risk pass on
            signature of the delivery note.> Partial deliveries need consent.""",
            """The schedule of deliveries is agreed each quarter. <Time for delivery is
            {lead_days} days from the order, and the {goods} are made available at the {site} at
            the {a}'s expense and peril until acceptance.> Acceptance follows the test in file
            {code2}; two failed attempts entitle the {b} to a third or to reject. Packaging is
            taken back.""",
        ),
        (
            Question("Where and within what time are goods or results to be handed over?"),
            Question("At which moment does the danger of loss move to the recipient?", "own"),
            Question("deliver to the {site} within {lead_days} days"),
        ),
    ),
    "damages": Clause(
        "Liquidated Damages",
        "performance",
        ("Delay", "Remedies for Delay", "Lateness"),
        (
            """The {a} {shall} report a looming delay as soon as it sees one. <For each full week by
            which a date is missed the {a} owes {ld_pct} per cent of the value of the late part, up
            to {ld_cap} per cent of it in all>, as a fair estimate of the loss and not as a penalty.
            The sum is set against further claims. No sum is owed where the {b} caused the
            delay.""",
            """Dates marked as firm in an order are binding. <If one is missed, the {b} may deduct
            {ld_amount} a day from the next invoice, for at most {ld_days} days>; <after that it may
            procure a substitute and charge the extra cost>. The {b} need not prove a loss.""",
        ),
        (
            Question("What fixed sum is owed when a date is missed?"),
            Question("Does running behind schedule cost the provider money?"),
            Question("delay: per cent or amount a day to be deducted"),
        ),
    ),
    "levels": Clause(
        "Service Levels",
        "performance",
        ("Service Levels", "Availability", "Quality Levels"),
        (
            """<The {a} {shall} see to it that the {system} can be used {sla_pct} per cent of each
            month>, measured at the interface to the public network. Planned maintenance on Sundays
            before 06:00 does not count. <A month below that level earns a credit of five per cent
            of the monthly charge for each started half per cent.> Reports show results by site and
            by hour.""",
            """Incidents are classed as critical, major or minor by the {b}, acting reasonably.
            <Critical ones get a reply within thirty minutes and a remedy within {fix_hours} hours;
            major ones within two Business Days; all others with the next release. At least
            {sla_pct} per cent of incidents in a quarter {shall} meet these times.> A status page
            with a traffic light is kept up at all times.""",
        ),
        (
            Question("What availability or reaction times has the provider promised?"),
            Question("How quickly must an outage be dealt with, and what if it drags on?"),
            Question("{sla_pct} per cent", "own"),
            Question("technician on the spot at the {site}", "again"),
        ),
        """<At the {site} support is staffed round the clock and a technician {shall} be on the spot
        within {pilot_hours} hours of a call>, bank holidays included.""",
        "Support at the {site}",
    ),
    "personnel": Clause(
        "Key Personnel",
        "performance",
        ("Staffing", "Team", "Persons in Charge"),
        (
            """The {a} uses staff who are trained and reliable. <{person_a} (lead) and {person_b}
            (deputy) {shall} give this Agreement the working time stated in the plan and may be
            replaced only with the {b}'s consent, unless they leave or fall ill.> A substitute is
            put to work for ten (10) days beside the predecessor at no charge. The {b} may ask, for
            good cause, that a person be withdrawn.""",
            """<The {a} has named {person_a} as the person in charge and {person_b} for
            technical questions>; they take part in the monthly meeting. <Neither is moved to
            another client during the first year.> Subcontractors work under the {a}'s direction
            and at its risk.""",
        ),
        (
            Question("Which named individuals must work on the project, and can they be swapped?"),
            Question("{person_b}"),
            Question("May the team leader be reassigned to somebody else's project?"),
        ),
    ),
    "audit": Clause(
        "Audit Rights",
        "performance",
        ("Records", "Inspection", "Books and Records"),
        (
            """The {a} keeps complete records for seven (7) years. <On {audit_days} days' notice,
            and not more than once a year unless there is cause for suspicion, the {b} or an
            accountant bound to secrecy may inspect them during office hours and take extracts. If
            it turns out that more than three per cent was overcharged, the {a} bears the cost of
            the inspection> and refunds the excess with interest.""",
            """Each party makes its books on this subject matter available. <An independent auditor
            chosen by the {b} may visit the {site} and other places of work {audit_days} days after
            announcing it, talk to staff and copy documents.> Findings go to both parties in draft.
            <Shortcomings are remedied under a plan within thirty (30) days.> The auditor's fee is
            borne by whoever asked for the visit.""",
        ),
        (
            Question("Who may examine the books or premises, and who pays for it?"),
            Question("Can the customer send somebody to check that it was billed correctly?"),
            Question("inspect records, auditor, {audit_days} days", "own"),
            Question("calibration sheets of series {code}", "again"),
        ),
        """<Temperature logs and calibration sheets of series {code} are open to the {b} at all
        times and without notice>, through the read-only account that the {a} sets up.""",
        "Series {code}",
    ),
    "insurance": Clause(
        "Insurance",
        "risk",
        ("Insurance", "Cover", "Policies"),
        (
            """<The {a} {shall} hold, with an insurer of good standing, public and product liability
            cover of at least {ins} for each event, and professional cover of the same amount, from
            the Effective Date until two years after the end.> Certificates are supplied each
            January. <The {b} is named as additional insured.> A change for the worse is notified
            within five (5) Business Days.""",
            """Each party insures its own property. <In addition the {a} takes out a policy of not
            less than {ins} against injury, damage and loss of data, waives recourse against the
            {b}, and shows proof of the premium on request.> The cover does not limit what the {a}
            owes under other provisions.""",
        ),
        (
            Question("What cover must be taken out, and in what amount?"),
            Question("Is a policy required in case somebody gets hurt or things are destroyed?"),
            Question("policy {code2}", "again"),
            Question("{ins}", "own"),
        ),
        """<While goods lie at the {site} they are covered against fire, water and theft at
        replacement value, at the {b}'s expense, under policy {code2}.>""",
        "Goods in store",
    ),
    "noncompete": Clause(
        "Non-Compete",
        "covenants",
        ("Competing Business", "Restraint", "Loyalty"),
        (
            """<During this Agreement and for {nc_months} months after it the {b} {shall} not make,
            market or hold an interest in anything that competes with the {goods} in {territory}.>
            A holding of less than two per cent in a listed company is harmless. The parties regard
            the length and the area as reasonable; a court may narrow them.""",
            """The {a} invests in the relationship and shares know-how. <For that reason the {b},
            and any company that it controls, keeps out of {field} in {territory}, other than under
            this Agreement, until {nc_months} months have gone by since its end.> <For each case of
            breach a sum of {fee} is due.> Business that existed on the Effective Date and is listed
            in file {code2} may go on.""",
        ),
        (
            Question("Is a party barred from running a rival business, where and for how long?"),
            Question("Once it is over, may the {b} sell similar things on its own account?"),
            Question("{nc_months} months, compete, {territory}"),
        ),
    ),
    "nonsolicit": Clause(
        "Non-Solicitation",
        "covenants",
        ("Staff and Customers", "No Poaching", "Employees"),
        (
            """<Neither party {shall}, during this Agreement and for {ns_months} months after it,
            entice away an employee of the other who has worked on the {goods}.> A general
            advertisement is no enticement. <A breach costs six monthly salaries of the person
            concerned.>""",
            """The parties respect each other's teams. <An offer of employment to a person of the
            other's staff, and an attempt to draw off its customers, is prohibited until
            {ns_months} months after the end>, unless the other has consented in writing.""",
        ),
        (
            Question("May a party hire the other's staff or approach its customers?"),
            Question("What stops them from stealing each other's workers?"),
            Question("entice away employees; offer of employment; {ns_months} months"),
        ),
    ),
    "secrecy": Clause(
        "Confidentiality",
        "covenants",
        ("Confidentiality", "Secrecy", "Protection of Information"),
        (
            """“Confidential Information” is whatever a party learns about the other's business,
            technology, customers, prices or plans in connection with this Agreement, in any form,
            whether or not it is marked.

            <(a) The recipient {shall} keep Confidential Information secret with the care that it
            uses for its own secrets, and at least with reasonable care; use it for the purposes of
            this Agreement alone; and make it available only to those of its staff, advisers and
            contractors who need it and are bound in the same way. It answers for their conduct.

            (b) These duties do not cover information that is or becomes public without a breach,
            that the recipient already had, that it receives from a third party entitled to pass it
            on, or that it works out by itself without the use of what was disclosed. Whoever relies
            on such an exception {shall} prove it.

            (c) If a court or an authority demands disclosure, the recipient {shall} tell the other
            in good time, as far as it may, and disclose no more than it must. It {shall} ask for
            confidential treatment of what it hands over.>

            (d) Copies are made only as needed. On request, and at the latest when this Agreement
            ends, the recipient returns or destroys what it holds and confirms so in writing. One
            copy may stay in the archive of the legal department, and copies in routine backups may
            stay until they are overwritten; both remain subject to this provision.

            (e) Press releases, references and the use of the other's name or logo need consent. The
            existence of this Agreement is not secret once both parties have announced it.

            <(f) These obligations last for {conf_years} years from the end of this Agreement, and
            for trade secrets as long as they are trade secrets.> Damages alone may not be a
            sufficient remedy, so that an injunction may be sought without proof of special loss or
            the posting of a bond.""",
            """<What one party discloses to the other about its affairs is to be treated as
            confidential for the time of this Agreement and {conf_years} years beyond.> It may be
            shown to employees and advisers who must know it and are sworn to silence, used for no
            other end, and is returned on demand. Public facts, facts already known and facts found
            independently are free. <A recipient who is compelled by law to disclose {shall} warn
            the other first.> The same goes for the content of this Agreement, its schedules, and
            the talks that led up to it.""",
        ),
        (
            Question("How must secret information be handled, and how long does the duty last?"),
            Question("About what must the parties keep quiet, and until when?"),
            Question("compelled disclosure, return of copies, exceptions to secrecy"),
            Question("Who may look at papers with the stamp {code}?", "again"),
        ),
        """<Recipes and drawings bearing the stamp {code} may be opened only in the reading room of
        the {site}, by persons entered in its register, and {shall} not be copied at all.>""",
        "Stamp {code}",
    ),
    "ownership": Clause(
        "IP Ownership",
        "covenants",
        ("Results", "Intellectual Property", "Ownership of Work Product"),
        (
            """Each party keeps what it owned before. <Results that the {a} creates for the {b}
            under this Agreement, including drafts, drawings, code and the rights in them, belong
            to the {b} from the moment they come into being; the {a} hereby assigns them and
            {shall} sign whatever is needed to record that. General skills and tools stay with the
            {a}. Where an assignment is not possible, the {b} has an exclusive, perpetual and free
            licence.>""",
            """<All inventions, improvements and designs that concern the {goods} are the property
            of the {a}, even where the {b} suggested or paid for them>; the {b} assigns its share.
            It may use them for the purposes of this Agreement. Feedback may be used without
            restriction. The {b} {shall} tell the {a} of any infringement that comes to its
            attention.""",
        ),
        (
            Question("Who owns inventions and other results that come out of the cooperation?"),
            Question("If we pay for a design to be developed, is it ours?"),
            Question("assignment of inventions, drawings, code and results"),
        ),
    ),
    "data": Clause(
        "Data Protection",
        "covenants",
        ("Personal Data", "Data Protection", "Privacy and Security"),
        (
            """The {a} processes personal data for the {b} only on documented instructions. <It
            encrypts them in storage and in transit, keeps them within {region}, and reports a
            breach of security within {breach_hours} hours of becoming aware of it, with what is
            known about its extent. Sub-processors are listed in file {code2}; a new one may be
            objected to within fourteen (14) days. On the last day the data are returned and then
            erased.>""",
            """Both parties observe the law on privacy. <Data of natural persons {shall} not leave
            {region} without the {b}'s consent.> <If data are lost, altered or seen by somebody
            without authority, the {a} informs the {b} no later than {breach_hours} hours
            afterwards and bears the expense of telling those affected.> An assessment of risks is
            renewed each year. Requests of data subjects are passed on unanswered.""",
        ),
        (
            Question("Where may personal data be kept and how soon must a breach be reported?"),
            Question("What happens if hackers get hold of information about individuals?"),
            Question("report to the {b} within {breach_hours} hours"),
        ),
    ),
    "warranty": Clause(
        "Warranty Duration",
        "risk",
        ("Warranties", "Warranty", "Conformity"),
        (
            """The {a} has the right and the power to enter into this Agreement. <It warrants for
            {warr_months} months from acceptance that the {goods} conform to the specification, are
            free of faults in design, material and workmanship, and are fit for {field}. Within
            that time it {shall}, at the {b}'s choice, repair, replace or perform again without
            charge, and failing that refund the price.> Wear and misuse are excluded. There are no
            other warranties.""",
            """Each party states that it is duly organised and that no consent of a third party is
            missing. <Faults that show themselves within {warr_months} months are put right by the
            {a} free of charge and at the place of use.> The period starts anew for replaced parts.
            The {a} gives no further promise of any kind, whether by statute or custom, so far as
            it may be disclaimed.""",
        ),
        (
            Question("How long does the provider stand behind the quality of what it delivers?"),
            Question("Until when can something that breaks be mended for free?"),
            Question("How long are batteries of series {code} guaranteed?", "again"),
            Question("faults, {warr_months} months, repair free of charge", "own"),
        ),
        """<Seals, batteries and other wearing parts of series {code} carry {pilot_months} months
        only>, counted from dispatch and not from acceptance.""",
        "Wearing parts",
    ),
    "cap": Clause(
        "Cap on Liability",
        "risk",
        ("Limitation of Liability", "Limits", "Extent of Liability"),
        (
            """Neither party is liable for loss of profit, of goodwill or of data that a proper
            backup would have saved. <All claims against a party under or in connection with this
            Agreement, whatever their basis, are limited in each contract year to the greater of
            {cap} and the fees of the preceding {cap_months} months.> Service credits and sums
            agreed for delay count towards that limit. <uncapped|The limit and the exclusion do not
            apply to death or injury, to fraud, to wilful or grossly negligent conduct, to a breach
            of secrecy or to the duty to indemnify.>""",
            """<The aggregate liability of the {a} {shall} not exceed {cap}.> The {b}'s duty to pay
            the price is not touched by this. Indirect and consequential losses are not recoverable
            by either side, even if they could be foreseen. <uncapped|No ceiling holds where a party
            acted with intent, hurt a person, or used the other's secrets for itself.> The prices
            reflect this distribution of risk.""",
        ),
        (
            Question("Up to what amount can a party be held liable?"),
            Question("What is the most that could be recovered if everything goes wrong?"),
            Question("Ceiling during the {system} trial", "again"),
            Question("{cap}", "own"),
        ),
        """<While the {system} is on trial the amount for which the {a} may be held to account is
        {pilot_cap} in total>, in place of the amount given in the body.""",
        "Trial operation",
    ),
    "uncapped": Clause(
        "Uncapped Liability",
        "risk",
        ("Unlimited Liability",),
        (),
        (
            Question("For which kinds of conduct or loss is liability without limit?"),
            Question("Which wrongs are too serious for the financial ceiling to help?"),
            Question("limit does not apply: fraud, intent, injury, secrets"),
        ),
    ),
    "indemnity": Clause(
        "Indemnification",
        "risk",
        ("Indemnities", "Indemnification", "Third-Party Claims"),
        (
            """<The {a} {shall} defend the {b}, its officers and staff against claims of third
            parties that the {goods} or their use as agreed infringe a right, caused injury or
            damaged property, and hold them harmless from what is awarded or settled and from
            reasonable fees of counsel.

            The {b} {shall} (i) report a claim without delay, (ii) leave the conduct of the defence
            to the {a}, save that no admission is made without consent, and (iii) help as far as is
            reasonable, at the {a}'s cost. A late report frees the {a} only so far as it was
            harmed by it.>

            If a claim of infringement is made or to be feared, the {a} may obtain the right to
            continue, change the {goods} so that they no longer infringe while keeping their
            function, or, where neither can be had on acceptable terms, take them back and return
            the unused part of the price. Claims that rest on combinations not foreseen in the
            documents, or on changes made by the {b}, fall outside.

            <The {b} {shall} in the same way indemnify the {a} against claims that arise from
            materials which it supplied, from instructions that it gave, or from its breach of the
            law.> This provision states the whole of what is owed for such claims.""",
            """<Each party (the “Indemnitor”) keeps the other free from losses, fines and costs that
            an outsider claims because of the Indemnitor's negligence, breach of statute or
            violation of rights.> The party claimed against {shall} give notice, allow the
            Indemnitor to run the case, and not settle without it. What is recovered from an insurer
            is deducted.""",
        ),
        (
            Question("Who must defend and hold harmless whom against claims of outsiders?"),
            Question("If a stranger takes us to court over these goods, who picks up the bill?"),
            Question("recall of series {code}", "again"),
            Question("indemnify, defend, claims of third parties", "own"),
        ),
        """<Recalls ordered by an authority for series {code} are carried out and paid for by the
        {a}, including collection from end users>, even if no one has made a claim.""",
        "Recall of series {code}",
    ),
    "assignment": Clause(
        "Anti-Assignment",
        "general",
        ("Assignment", "Transfer", "Successors"),
        (
            """<Neither party may assign or transfer this Agreement or a right under it without the
            other's written consent, which is not to be withheld without reason.> <An attempt to do
            so is void.> Claims for money may be pledged to a bank. This Agreement binds the
            successors of both.""",
            """<The {a} {shall} not hand its duties to someone else, by operation of law or
            otherwise, unless the {b} has agreed beforehand>; the {b} may transfer this Agreement to
            a company of its group by simple notice. A party that transfers remains bound beside
            the new one for one year.""",
        ),
        (
            Question("Is consent needed to hand the contract over to somebody else?"),
            Question("Could the vendor pass its obligations on to a stranger?"),
        ),
    ),
    "control": Clause(
        "Change of Control",
        "general",
        ("Change of Control", "Change in Ownership", "Shareholders"),
        (
            """<If more than half of the shares or votes in a party pass to another person, directly
            or indirectly, that party {shall} report it within ten (10) days, and the other may
            terminate this Agreement within {coc_days} days of the report.> A listing on a stock
            exchange and a shift inside a group are not counted.""",
            """A party tells the other who stands behind it. <Where a competitor of the {b} gains
            the power to direct the {a}'s affairs, the {b} may, for {coc_days} days after it hears
            of that, bring this Agreement to an end without compensation or require safeguards for
            its information.>""",
        ),
        (
            Question("What may a party do when the other is taken over?"),
            Question("A rival buys the company: are we stuck with it?"),
            Question("shares or votes pass to a competitor; {coc_days} days"),
        ),
    ),
    "force": Clause(
        "Force Majeure",
        "general",
        ("Force Majeure", "Events Beyond Control", "Hindrance"),
        (
            """<A party is excused for as long and as far as an event beyond its reasonable control,
            such as war, flood, epidemic, strike at a third party or failure of public supply, keeps
            it from performing>, if it gives notice and does what it can. Lack of money is no such
            event. <When the event has lasted {fm_days} days the other may withdraw from the part
            affected.>""",
            """Obligations to pay are never suspended. <In all else, delay due to fire, storm,
            embargo, riot or an act of government is not a breach>, and the dates move by the time
            lost. <Either party may cancel if the hindrance goes on for more than {fm_days} days.>
            The party concerned {shall} keep the other up to date each week.""",
        ),
        (
            Question("Which outside events excuse a failure to perform, and what follows?"),
            Question("Are they let off the hook if a storm shuts everything down?"),
            Question("war, flood, storm, embargo; {fm_days} days"),
        ),
    ),
    "amendment": Clause(
        "Amendments",
        "general",
        ("Amendments", "Changes in Writing", "Form"),
        (
            """<A change of this Agreement, of this provision too, takes effect only by a document
            that both parties have signed by hand or with a qualified electronic signature.> <A chat
            message, a voice note or an emoji (👍 or other) neither changes nor waives
            anything.> Failure to enforce a right is no waiver of it.""",
            """This Agreement replaces earlier talks and drafts. <It may be modified only in
            writing and with the signatures of {person_a} and of an officer of the {b}>; <reactions
            such as 👍 in a messaging service, and silence, are no consent>. If a provision is void,
            the rest stands.""",
        ),
        (
            Question("In what form must changes to the contract be made?"),
            Question("Does a thumbs-up in a chat count as agreeing to a modification?"),
        ),
    ),
    "escrow": Clause(
        "Source Code Escrow",
        "performance",
        ("Deposit", "Continuity", "Escrow"),
        (
            """<The {a} deposits the sources and build instructions of the {system} with {escrow}
            within thirty (30) days and renews the deposit with each main release.> <They are
            released to the {b} if the {a} becomes insolvent, gives up maintenance or fails to
            correct a critical fault for {cure_days} days.> The fees of the deposit are shared.""",
            """A plan for emergencies is tested twice a year. <So that the {b} can carry on without
            the {a}, drawings, sources and lists of suppliers are kept by {escrow}, which hands them
            out on a sworn statement that the {a} has ceased business.> The {b} may then use them to
            serve itself alone.""",
        ),
        (
            Question("Are sources or drawings deposited with a third party, and when released?"),
            Question("{escrow}"),
            Question("What if the maker goes bust and nobody can maintain the program?"),
        ),
    ),
}
"""Every clause type by key. One without texts is marked inside another one's."""


ENTRIES: dict[str, tuple[str, ...]] = {
    "Lot": (
        """<Units of lot {entry} are kept at no more than {few} degrees Celsius and are shipped
        upright.> A data logger travels with each pallet; its readings are uploaded on arrival and
        kept with the batch papers. Deviations are noted on the delivery note.""",
        """<For lot {entry} the tolerance is 0.{few} millimetres, checked on every {many}th piece.>
        Pieces outside the tolerance are set aside and marked in red, and the count is entered in
        the test report that goes with the consignment.""",
        """<Lot {entry} is called off in batches of {many}0, with {few} days between call and
        dispatch.> The batch size may be changed by agreement of the project leads, who record the
        change in the minutes of the monthly meeting.""",
        """<Cartons of lot {entry} carry the label of the {b}, stand {few} to a layer and {many} to
        a pallet.> Film and edge guards are taken back. A sample of each printing is approved
        beforehand and kept with the batch papers for two years.""",
    ),
    "Package": (
        """<Reports on package {entry} are due on day {few} of each month and list hours, materials
        and open points.> They are sent by e-mail to the persons in charge, who approve or return
        them within a week.""",
        """<Package {entry} is limited to {many} person-days, {few} of them on the premises.> Time
        spent on the road is not counted. A forecast that the limit will not do is given as soon as
        four fifths of it have been used.""",
        """<A review of package {entry} takes place every {few} weeks and is attended by no fewer
        than {many} per cent of those who work on it.> Open points are entered in a list with a
        date and a name. The list goes with the monthly report.""",
        """<Tests of package {entry} run for {many} hours and are passed with no more than {few}
        minor faults.> What is found is put in order of weight. A second run is free of charge; the
        premises are made available for it.""",
    ),
}
"""Entries of the schedule, told apart by a number alone: of goods, and of work."""

ENTRY_QUESTIONS: tuple[str, ...] = (
    "What applies to {item} {entry}?",
    "{item} {entry}",
    "Schedule, number {entry}: what exactly is required?",
)

DEFINITIONS: tuple[str, ...] = (
    """“Affiliate” means a company that controls a party, is controlled by it, or is under common
    control with it; a change of control of a party does not by itself end that status.""",
    """“Business Day” means a day on which banks in {city} are open for ordinary business.""",
    """“Charges” means the prices, fees and expenses payable under this Agreement, as adjusted in
    line with the provisions on indexation and late payment.""",
    """“{goods}” means {thing}, as further described in the schedule.""",
    """“Confidential Information” has the meaning given in the provisions on secrecy, and includes
    the deposit materials and the results of an inspection.""",
    """“Event of Default” means a breach that entitles a party to terminate, once any cure period
    has run out.""",
    """“Limit of Liability” means the ceiling described in the provisions on risk, as it stands
    from time to time.""",
    """“Order” means a purchase order, call-off or statement of work that the {a} has accepted.""",
    """“Renewal Term” means a period by which the Initial Term is extended, if at all.""",
    """“Results” means drawings, software, reports and other work product; who owns them is said
    in the undertakings.""",
    """“{system}” means the system of that name with its interfaces, documents and updates.""",
    """“Territory” means {territory}, whether or not the {b} enjoys exclusive rights there.""",
    """“Service Level” means a measure of availability, response or repair.""",
    """“Minimum Quantity” means the yearly volume or spend to which the {b} has committed.""",
    """“Warranty Period” means the time during which faults are put right without charge.""",
)

RECITALS: tuple[str, ...] = (
    """{a} is engaged in {field} and has built up, over many years, the staff, the facilities
    and the rights that it needs to {provide} {goods} of high quality.""",
    """{b} wishes to obtain {thing} on agreed levels of service and at prices that may be
    adjusted only in a manner that can be foreseen.""",
    """parties have considered the exclusive or non-exclusive nature of their cooperation, the
    volumes to be committed, the ownership of results and the limits of their liability.""",
    """parties have exchanged confidential information in the course of their talks, and intend
    that it stay protected after this Agreement has expired or been terminated.""",
    """{a} has inspected the {site} and has satisfied itself that delivery, maintenance and
    audits can take place there without hindrance.""",
)
"""Each goes on from the word “The”."""

FILLERS: tuple[tuple[str, str, str], ...] = (
    (
        "scope",
        "Interpretation",
        """Headings are for convenience. “Including” means including without limitation. Words in
        the singular cover the plural. If a schedule contradicts the body, the body prevails, except
        where the schedule says that it is to prevail. References to termination include expiry, and
        references to liability include liability for those whom a party employs.""",
    ),
    (
        "general",
        "Notices",
        """A notice under this Agreement, be it of breach, termination, renewal, price increase or
        change of control, is made in writing in English, addressed to the persons in charge, and
        delivered by hand, by courier or by registered letter. It takes effect on receipt, or on
        the next Business Day if it arrives after 17:00. Each party may change its address by
        notice.""",
    ),
    (
        "performance",
        "Cooperation",
        """The parties meet each month to review performance, open invoices, forecasts, staffing,
        incidents and audits. Minutes are kept by the {a}. Nothing said in a meeting amends this
        Agreement, extends a warranty or waives a right. The persons in charge may set up working
        groups and agree on their rules.""",
    ),
    (
        "scope",
        "Independent Parties",
        """The parties are independent businesses. Nothing here makes one the partner, agent or
        employee of the other, and neither may bind the other, save where this Agreement says so.
        Each pays its own taxes, social charges and insurance.""",
    ),
    (
        "general",
        "Counterparts",
        """This Agreement may be signed in counterparts, which together make one instrument.""",
    ),
    (
        "general",
        "Language",
        """The English text prevails over a translation.""",
    ),
    (
        "covenants",
        "Compliance",
        """Each party observes the law that applies to it, including the law on bribery, sanctions,
        export control, competition and working conditions. It keeps records that show this, trains
        its staff, and cooperates with inquiries. A party that is offered or asked for an undue
        advantage {shall} report it. Serious violations are a material breach, which need not be
        preceded by a warning, and the loss caused by them is not subject to agreement on delay.""",
    ),
    (
        "general",
        "Severability",
        """If a term is or becomes invalid, the others stay in force, and the parties put in its
        place a term that comes closest to what they wanted.""",
    ),
    (
        "commercial",
        "Costs",
        """Each party bears its own cost of preparing, negotiating and performing this
        Agreement.""",
    ),
    (
        "risk",
        "No Third-Party Rights",
        """A person who is not a party may not enforce a term of this Agreement, whether as insured,
        indemnified person, affiliate, employee, customer or assignee.""",
    ),
)
"""Boilerplate: its article, its title, its text."""

RIDERS: dict[str, tuple[str, ...]] = {
    "scope": (
        """The {a} keeps the {b} informed of changes to the range that may affect its business in
        {field}, and sends a new list at the start of each half-year.""",
        """Neither party may hold itself out as having wider rights than those described here, in
        print, online or at trade fairs.""",
        """The {b} {shall} use the names and marks only in the form that the current style guide
        shows, and {shall} send samples before first use.""",
        """A use that is not mentioned is not allowed; in doubt the {b} asks first and the {a}
        answers within five (5) Business Days.""",
        """The {a} may go on to serve customers outside {territory} as before and need not give
        account of that.""",
        """Both parties regard the scope so described as matching the investment that each of them
        makes.""",
        """Demonstration pieces, samples and trial accounts are covered as if they had been ordered,
        but are free of charge for thirty (30) days.""",
    ),
    "performance": (
        """The project leads look at the figures of the past month at their regular meeting and
        agree on what has to be improved, by whom and by when.""",
        """The {b} {shall} grant access to the {site} during its opening hours, provide light, power
        and a dry room, and name a contact for each shift.""",
        """What is reported under this heading is set out in a table in the form that the {b} lays
        down, and is kept for three (3) years.""",
        """If the {a} finds that a target cannot be met it {shall} say so without waiting to be
        asked, and propose what can be done.""",
        """Work outside these hours is paid for at the rate for urgent work if the {b} has asked for
        it in writing.""",
        """Tools and test equipment are calibrated once a year by a body that is accredited for the
        purpose.""",
        """A subcontractor may be used for single tasks; its failure counts as the failure of the
        {a}, and its staff observe the rules of the {site}.""",
        """The {b} may watch tests or send an observer, who {shall} follow the instructions on
        safety.""",
    ),
    "commercial": (
        """Each invoice shows the number of the order, the period, the quantity and the rate, and
        comes with the papers that are needed to check it.""",
        """All amounts are stated net of value added tax, which is charged in addition where it is
        due.""",
        """A correction in favour of the {b} is made by credit note within ten (10) days of the day
        on which the mistake was noticed.""",
        """Travel within a radius of fifty kilometres of the {site} is included; travel beyond it is
        charged at cost on production of receipts.""",
        """The finance departments compare their accounts at the end of each quarter and settle
        differences within a month.""",
        """Bank details may be changed only by a letter signed by two officers, and the change is
        checked by telephone before a payment is made.""",
        """Discounts and rebates that were granted on a single occasion give no right to receive
        them again.""",
    ),
    "covenants": (
        """The party that relies on an exception bears the burden of showing that its conditions are
        met.""",
        """Each party {shall} instruct those of its staff who are concerned, in a language that they
        understand, and repeat the instruction every year.""",
        """A breach by a person for whom a party answers is a breach by that party, whether or not
        it knew of it.""",
        """Because money may not make good the harm, the party affected may ask a court for an order
        in addition to any other remedy.""",
        """Permission that has been given for one case is not permission for the next one, however
        similar it may be.""",
        """The parties agree that these obligations are needed to protect the effort which has gone
        into the {system} and into the business with {goods}.""",
        """Questions on this subject are put to {person_b}, who keeps a register of the answers.""",
    ),
    "risk": (
        """The party that suffers a loss {shall} do what can reasonably be asked of it to keep the
        loss small, and {shall} report it within a month.""",
        """What has been recovered once, from whomever, cannot be claimed a second time under
        another heading.""",
        """A claim lapses if it has not been raised in writing within one year after the party that
        holds it learned of its basis.""",
        """Statements in catalogues, samples and presentations describe the {goods} in general and
        are not a promise unless an order repeats them.""",
        """The parties have set the prices with this division of risk in mind and have each taken
        advice on what can be insured.""",
        """Where both parties have contributed to a loss, each bears the share that corresponds to
        its part in it.""",
        """Papers that bear on the cause of a loss are kept until the matter is closed, and each
        side may look at those of the other.""",
    ),
    "duration": (
        """A notice that names a wrong date takes effect on the next date on which it could have
        been given properly.""",
        """Whoever gives notice {shall} say on which provision it relies, and may not change the
        ground afterwards.""",
        """Orders that have been confirmed are completed unless the {b} cancels them in the same
        letter.""",
        """Until the last day both parties {shall} perform as before, and the {b} may not hold back
        payments because the end is near.""",
        """A party that has been given notice may tell its staff and its bank, but makes no public
        statement before the date on which the notice takes effect.""",
        """The period is counted from the day after receipt; if its last day is not a Business Day,
        the next Business Day takes its place.""",
        """Periods for which performance was suspended are not added at the end.""",
        """The parties {shall} meet at the {site} at least once in the last quarter to settle what
        remains to be done.""",
    ),
    "general": (
        """A copy of each document drawn up under this heading goes to the legal departments of both
        parties.""",
        """The rule holds for schedules, orders and side letters as it does for the body of this
        Agreement.""",
        """If a translation is needed for an authority, the party that has to present it has it made
        at its own expense.""",
        """The parties {shall} act in good faith and have regard to each other's legitimate
        interests when they make use of it.""",
        """Periods that would end on a holiday in {city} end on the next Business Day.""",
        """Declarations that a party makes on behalf of its affiliates bind them as if they had
        signed.""",
        """A party that incurs expense because the other did not observe this rule may ask for the
        expense to be made good.""",
    ),
}
"""Sentences that stand with the clauses of an article and answer no question."""

PROCEDURE: tuple[str, ...] = ("Further Rules", "Procedure", "Practical Matters", "Handling")
"""What may stand over the sentences of an article that no clause took up."""

GUIDE: dict[str, str] = {
    "scope": """Whether a party promises to deal with the other alone, what software or marks it may
    use and within what limits, and who comes first when a new line is offered, is said under
    “{title}”. Readers who ask what is allowed and to whom it is reserved should begin there.""",
    "performance": """Where and when things are handed over, what level of availability or reaction
    has been promised, which individuals work on the project, who may examine the books, and what
    sum is owed when a date is missed, is dealt with under “{title}”, read with the schedule.""",
    "commercial": """When invoices must be paid, what happens when a sum is overdue, under what
    conditions charges are raised or lowered, and whether a minimum must be bought each year, can
    be found under “{title}”. Departures for single orders or sites are among the special
    conditions.""",
    "covenants": """How secret information is to be handled and for how many years, who owns
    inventions and results, where personal data may be kept, and whether a party may hire the
    other's staff or run a rival business, is the subject of “{title}”.""",
    "risk": """How long faults are mended for free, up to what amount a party is liable and for
    which conduct without limit, who defends whom against outsiders, and what cover must be taken
    out, is laid down under “{title}”. The amounts are fixed there and nowhere in this guide.""",
    "duration": """How long the parties are bound, whether this Agreement is prolonged and by when
    one must speak up, on what notice or ground it can be ended, and which duties go on afterwards,
    is explained under “{title}”. Some sites and systems have periods of their own.""",
    "general": """Which law governs, where disagreements are settled, in what form changes are made,
    whether consent is needed to hand the contract to somebody else or after a takeover, and which
    outside events excuse a failure, is stated under “{title}”.""",
}
"""A reader's guide to each article: it says what is asked, and answers nothing."""
