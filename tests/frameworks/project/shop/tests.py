"""The project's own tests, run by Django's runner on Django's test database."""

from django.db import connection, transaction
from django.test import Client, TestCase, TransactionTestCase
from shop.models import Order
from shop.tasks import bill

from duetime import InvalidInput, testing
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


class EachInATransactionOfItsOwn(TestCase):
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

    def test_reading_keeps_a_connection_open(self) -> None:
        self.assertEqual(app.sync.jobs(queue="empty"), [])

    def test_submitting_from_a_view(self) -> None:
        answer = Client().post("/orders").json()
        self.assertEqual(Order.objects.get().pk, answer["order"])
