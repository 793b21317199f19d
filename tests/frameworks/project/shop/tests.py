"""The project's own tests, run by Django's runner on Django's test database."""

from django.db import connection, transaction
from django.test import Client, TestCase, TransactionTestCase
from shop.models import Order
from shop.tasks import bill

import duetime as dt
from duetime import InvalidInput, testing
from duetime.frameworks import django as joined
from duetime.frameworks.django import app, submit


class InTransactions(TransactionTestCase):
    def stored(self) -> int:
        return len(app.sync.jobs(queue=self.id()[:128]))

    def submit(self) -> None:
        submit(bill, order=1, queue=self.id()[:128])

    def test_a_rollback_takes_the_job_along(self) -> None:
        with self.assertRaises(RuntimeError), transaction.atomic():
            Order.objects.create()
            self.submit()
            raise RuntimeError
        self.assertEqual((self.stored(), Order.objects.count()), (0, 0))

    def test_a_savepoint_that_is_rolled_back_takes_only_its_own(self) -> None:
        with transaction.atomic():
            self.submit()
            with self.assertRaises(RuntimeError), transaction.atomic():
                self.submit()
                raise RuntimeError
        self.assertEqual(self.stored(), 1)

    def test_a_commit_stores_it(self) -> None:
        with transaction.atomic():
            self.submit()
            self.assertTrue(connection.in_atomic_block)
        self.assertEqual(self.stored(), 1)

    def test_without_a_transaction_it_is_stored_at_once(self) -> None:
        self.submit()
        self.assertEqual(self.stored(), 1)

    def test_a_refused_job_leaves_the_transaction_usable(self) -> None:
        with transaction.atomic():
            with self.assertRaises(InvalidInput):
                submit(bill, order=1, priority=99)
            Order.objects.create()
        self.assertEqual(Order.objects.count(), 1)

    def test_a_view_that_fails_leaves_neither(self) -> None:
        with self.assertRaises(RuntimeError):
            Client().post("/orders?fail")
        self.assertEqual((Order.objects.count(), len(app.sync.jobs(queue="default"))), (0, 0))


class Changes(TransactionTestCase):
    def setUp(self) -> None:
        self.job = submit(bill, order=1, delay="1h", queue="changes")
        joined.schedule("kept", bill, dt.Every("1h"), payload={"order": 1}, on_conflict="replace")
        joined.resume("kept")
        joined.schedule("gone", bill, dt.Every("1h"), payload={"order": 1}, on_conflict="replace")

    def change(self) -> None:
        Order.objects.create()
        joined.schedule("new", bill, dt.Every("2h"), payload={"order": 2})
        joined.pause("kept", "a note")
        joined.resume("kept")
        joined.pause("kept", "another")
        joined.remove("gone")
        joined.cancel_job(self.job.id)

    def seen(self) -> tuple[object, ...]:
        names = [one.name for one in app.sync.schedules()]
        return names, app.sync.get_schedule("kept").paused, app.sync.get_job(self.job.id).state

    def test_a_rollback_takes_them_along(self) -> None:
        with self.assertRaises(RuntimeError), transaction.atomic():
            self.change()
            raise RuntimeError
        self.assertEqual(self.seen(), (["gone", "kept"], False, "pending"))

    def test_a_commit_makes_them(self) -> None:
        with transaction.atomic():
            self.change()
            self.assertEqual(self.seen(), (["gone", "kept"], False, "pending"))
        self.assertEqual(self.seen(), (["kept", "new"], True, "cancelled"))
        joined.remove("new")

    def test_beside_the_transaction_they_are_refused_at_once(self) -> None:
        with transaction.atomic():
            Order.objects.create()
            for call in (
                lambda: app.sync.schedule("new", bill, dt.Every("2h"), payload={"order": 2}),
                lambda: app.sync.pause("kept"),
                lambda: app.sync.remove("gone"),
                lambda: app.sync.cancel_job(self.job.id),
                lambda: app.sync.reschedule_job(self.job.id, priority=9),
                self.job.cancel,
            ):
                with self.assertRaises(dt.TransactionOpen):
                    call()
            app.sync.reschedule_job(self.job.id, priority=9, connection=connection)
            transaction.on_commit(lambda: app.sync.pause("kept"))
        self.assertEqual(self.seen(), (["gone", "kept"], True, "pending"))
        self.assertEqual(app.sync.get_job(self.job.id).priority, 9)


class EachInATransactionOfItsOwn(TestCase):
    def test_the_transaction_of_a_test_is_none_of_the_view(self) -> None:
        if connection.vendor == "postgresql":  # SQLite has one writer
            with self.assertRaises(dt.JobNotFound):
                app.sync.cancel_job("00000000-0000-7000-8000-000000000000")

    def test_recording_counts_no_job_of_a_transaction_that_is_rolled_back(self) -> None:
        with testing.recording(app):
            submit(bill, order=1)
            with self.assertRaises(RuntimeError), transaction.atomic():
                submit(bill, order=2)
                with transaction.atomic():
                    submit(bill, order=3)
                raise RuntimeError
            with self.captureOnCommitCallbacks(execute=True), transaction.atomic():
                submit(bill, order=4)
            app.sync.submit(bill, order=5, connection=connection)
            self.assertEqual([job.arguments["order"] for job in testing.submitted(app)], [1, 4, 5])
            joined.schedule("new", bill, dt.Every("1h"), payload={"order": 6})
            self.assertEqual([one.name for one in app.sync.schedules()], ["new"])

    def test_reading_keeps_a_connection_open(self) -> None:
        self.assertEqual(app.sync.jobs(queue="empty"), [])

    def test_submitting_from_a_view(self) -> None:
        answer = Client().post("/orders").json()
        self.assertEqual(Order.objects.get().pk, answer["order"])
